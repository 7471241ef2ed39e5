"""RelayPort: the service's socket interface for relays of other machines.

Source: docs/formats/ipc.md, "RelayPort".
"""

from __future__ import annotations

from stretto.ipc.service import Method, ServiceDescriptor
from stretto.protos import ipc

RELAY_PORT = ServiceDescriptor(
    "RelayPort",
    (
        Method("InitRelay", module=ipc),
        Method("SyncClock", module=ipc),
    ),
)
