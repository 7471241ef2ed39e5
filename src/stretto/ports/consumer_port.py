"""ConsumerPort: the service's socket interface for consumers, as a list of methods.

Source: docs/formats/ipc.md, "ConsumerPort".
"""

from __future__ import annotations

from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.protos import ipc

# Raw requests contain configs, which may be long. Raw replies are large or are forwarded unchanged:
# trace packets, states, statistics, configs.
CONSUMER_PORT = ServiceDescriptor(
    "ConsumerPort",
    (
        Method("EnableTracing", Raw, ipc.EnableTracingResponse),
        Method("DisableTracing", ipc.DisableTracingRequest, ipc.DisableTracingResponse),
        Method("ReadBuffers", ipc.ReadBuffersRequest, Raw),
        Method("FreeBuffers", ipc.FreeBuffersRequest, ipc.FreeBuffersResponse),
        Method("Flush", ipc.FlushRequest, ipc.FlushResponse),
        Method("StartTracing", ipc.StartTracingRequest, ipc.StartTracingResponse),
        Method("ChangeTraceConfig", Raw, ipc.ChangeTraceConfigResponse),
        Method("Detach", ipc.DetachRequest, ipc.DetachResponse),
        Method("Attach", ipc.AttachRequest, Raw),
        Method("GetTraceStats", ipc.GetTraceStatsRequest, Raw),
        Method("ObserveEvents", ipc.ObserveEventsRequest, ipc.ObserveEventsResponse),
        Method("QueryServiceState", ipc.QueryServiceStateRequest, Raw),
        Method("QueryCapabilities", ipc.QueryCapabilitiesRequest, ipc.QueryCapabilitiesResponse),
        Method(
            "SaveTraceForBugreport",
            ipc.SaveTraceForBugreportRequest,
            ipc.SaveTraceForBugreportResponse,
        ),
        Method("CloneSession", ipc.CloneSessionRequest, ipc.CloneSessionResponse),
    ),
    ipc.CONSUMER_PORT_TRACE,
)
