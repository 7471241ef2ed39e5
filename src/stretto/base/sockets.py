"""Connecting and listening at addresses of any kind (`socket_address`)."""

from __future__ import annotations

from stretto.base.socket_address import is_network
from stretto.base.unix_socket import UnixListener, UnixSocket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.stream_socket import StreamListener, StreamSocket


def connect(address: str, timeout_ms: float = 5000) -> StreamSocket:
    """Connect to a listening socket.

    Args:
        address: An address of any kind.
        timeout_ms: The limit for connecting, in ms.

    Raises:
        TransportError: There is no listener, no permission, or the time-out has passed.
    """
    if not is_network(address):
        return UnixSocket.connect(address, timeout_ms)
    # The module is imported late: few traced programs connect over a network.
    from stretto.base.network_socket import NetworkSocket

    return NetworkSocket.connect(address, timeout_ms)


def listen(address: str, mode: int = 0o600, group: int | None = None) -> StreamListener:
    """Open a socket that accepts connections.

    Args:
        address: An address of any kind.
        mode: Permissions, if the address is a path.
        group: Group of that path; None for the process's own.

    Raises:
        TransportError: The address can't be used.
    """
    if not is_network(address):
        return UnixListener(address, mode, group)
    from stretto.base.network_socket import NetworkListener

    return NetworkListener(address)
