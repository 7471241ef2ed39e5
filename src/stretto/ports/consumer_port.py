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
        Method("EnableTracing", request=Raw, module=ipc),
        Method("DisableTracing", module=ipc),
        Method("ReadBuffers", reply=Raw, module=ipc),
        Method("FreeBuffers", module=ipc),
        Method("Flush", module=ipc),
        Method("StartTracing", module=ipc),
        Method("ChangeTraceConfig", request=Raw, module=ipc),
        Method("Detach", module=ipc),
        Method("Attach", reply=Raw, module=ipc),
        Method("GetTraceStats", reply=Raw, module=ipc),
        Method("ObserveEvents", module=ipc),
        Method("QueryServiceState", reply=Raw, module=ipc),
        Method("QueryCapabilities", module=ipc),
        Method("SaveTraceForBugreport", module=ipc),
        Method("CloneSession", module=ipc),
    ),
    ipc.CONSUMER_PORT_TRACE,
)
