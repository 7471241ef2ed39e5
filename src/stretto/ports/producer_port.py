"""ProducerPort: the service's socket interface for producers, as a list of methods.

Source: docs/formats/ipc.md, "ProducerPort".
"""

from __future__ import annotations

from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.protos import ipc

PRODUCER_PORT = ServiceDescriptor(
    "ProducerPort",
    (
        Method("InitializeConnection", module=ipc),
        # Raw, because the service forwards the encoded descriptors to consumers.
        Method("RegisterDataSource", request=Raw, module=ipc),
        Method("UnregisterDataSource", module=ipc),
        # Native code decodes commits.
        Method("CommitData", request=Raw, module=ipc),
        Method("GetAsyncCommand", module=ipc),
        Method("RegisterTraceWriter", module=ipc),
        Method("UnregisterTraceWriter", module=ipc),
        Method("NotifyDataSourceStarted", module=ipc),
        Method("NotifyDataSourceStopped", module=ipc),
        Method("ActivateTriggers", module=ipc),
        Method("Sync", module=ipc),
        Method("UpdateDataSource", request=Raw, module=ipc),
    ),
    ipc.PRODUCER_PORT_TRACE,
)
