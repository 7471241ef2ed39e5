"""The service's side of RelayPort: one relay of another machine.

    relay --SetPeerIdentity-->  its machine's id and name       (`peer`)
          --InitRelay-------->  its system's description
          --SyncClock-------->  its clocks; ours are read immediately, then the reply is sent

RelayPort is the second service on producer sockets that accept relays. The service's endpoint is
created by the first request and removed when the connection ends.
"""

from __future__ import annotations

from stretto.ipc.host import HostedService
from stretto.ports.relay_port import RELAY_PORT
from stretto.protos import ipc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.ports.endpoints import RelayEndpoint
    from stretto.ports.peer import Peer

    ConnectRelay = Callable[[int], RelayEndpoint]
    """`TracingService.connect_relay`: makes the endpoint for the relay of a machine."""

MAX_CLOCKS = 64
"""Largest number of clocks in a snapshot; machines have ten. Further ones are left out."""


class RemoteRelay:
    """A relay behind a socket.

    Args:
        connect: Creates the service's endpoint.
        peer: The identity of the relay.
    """

    def __init__(self, connect: ConnectRelay, peer: Peer) -> None:
        self._connect = connect
        self._peer = peer
        self._endpoint: RelayEndpoint | None = None

    @property
    def service(self) -> HostedService:
        """The handlers of the relay's requests; the connection keeps a reference to them."""
        return HostedService(
            RELAY_PORT, {}, {"InitRelay": self._init_relay, "SyncClock": self._sync_clock}
        )

    def disconnected(self) -> None:
        """Handle the end of the connection."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            endpoint.disconnect()

    def _connected(self) -> RelayEndpoint:
        if self._endpoint is None:
            self._endpoint = self._connect(self._peer.machine_id)
        return self._endpoint

    def _init_relay(self, request: ipc.InitRelayRequest) -> None:
        if request.system_info is not None:
            self._connected().init_relay(request.system_info.encode())

    def _sync_clock(self, request: ipc.SyncClockRequest) -> None:
        clocks = [(clock.clock_id, clock.timestamp) for clock in request.clocks[:MAX_CLOCKS]]
        is_update = request.phase == ipc.SyncClockRequest.UPDATE
        self._connected().sync_clock(clocks, update=is_update)
