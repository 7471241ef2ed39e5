"""ProducerPort: the service's socket interface for producers, as a list of methods.

Source: docs/formats/ipc.md, "ProducerPort".
"""

from __future__ import annotations

from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.protos import ipc

PRODUCER_PORT = ServiceDescriptor(
    "ProducerPort",
    (
        Method(
            "InitializeConnection",
            ipc.InitializeConnectionRequest,
            ipc.InitializeConnectionResponse,
        ),
        # Raw, because the service forwards the encoded descriptors to consumers.
        Method("RegisterDataSource", Raw, ipc.RegisterDataSourceResponse),
        Method(
            "UnregisterDataSource",
            ipc.UnregisterDataSourceRequest,
            ipc.UnregisterDataSourceResponse,
        ),
        # Native code decodes commits.
        Method("CommitData", Raw, ipc.CommitDataResponse),
        Method("GetAsyncCommand", ipc.GetAsyncCommandRequest, ipc.GetAsyncCommandResponse),
        Method(
            "RegisterTraceWriter", ipc.RegisterTraceWriterRequest, ipc.RegisterTraceWriterResponse
        ),
        Method(
            "UnregisterTraceWriter",
            ipc.UnregisterTraceWriterRequest,
            ipc.UnregisterTraceWriterResponse,
        ),
        Method(
            "NotifyDataSourceStarted",
            ipc.NotifyDataSourceStartedRequest,
            ipc.NotifyDataSourceStartedResponse,
        ),
        Method(
            "NotifyDataSourceStopped",
            ipc.NotifyDataSourceStoppedRequest,
            ipc.NotifyDataSourceStoppedResponse,
        ),
        Method("ActivateTriggers", ipc.ActivateTriggersRequest, ipc.ActivateTriggersResponse),
        Method("Sync", ipc.SyncRequest, ipc.SyncResponse),
        Method("UpdateDataSource", Raw, ipc.UpdateDataSourceResponse),
    ),
    ipc.PRODUCER_PORT_TRACE,
)
