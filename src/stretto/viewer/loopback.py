"""TCP sockets on 127.0.0.1 that know which user is at the other end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.network_socket import NetworkListener, NetworkSocket
from stretto.viewer.peer_user import socket_owner

if TYPE_CHECKING:
    import socket

LOOPBACK = "127.0.0.1"


class LoopbackSocket(NetworkSocket):
    """One end of a connection."""

    __slots__ = ()

    def peer_user(self) -> int | None:
        """The id of the user who connected; None if it can't be known any more."""
        try:
            return socket_owner(self._socket.getpeername(), self._socket.getsockname())
        except OSError:
            return None  # it has gone already


class LoopbackListener(NetworkListener):
    """A socket that accepts connections.

    Args:
        port: 0 for any free one.

    Raises:
        TransportError: It can't be used.
    """

    __slots__ = ("port",)

    def __init__(self, port: int) -> None:
        super().__init__(f"{LOOPBACK}:{port}")
        self.port = int(self.bound_address.rpartition(":")[2])

    def _connection(self, end: socket.socket) -> LoopbackSocket:
        return LoopbackSocket(end)
