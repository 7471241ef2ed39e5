"""Connect and listen, by whatever address there is (`socket_address`)."""

from __future__ import annotations

from stretto.base.socket_address import is_network
from stretto.base.unix_socket import UnixListener, UnixSocket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.stream_socket import StreamListener, StreamSocket


def connect(address: str, timeout_ms: float = 5000) -> StreamSocket:
    """A connection to a listening socket.

    Args:
        address: Of any kind.
        timeout_ms: For the connection alone.

    Raises:
        TransportError: Nobody listens there, no permission, time-out.
    """
    if not is_network(address):
        return UnixSocket.connect(address, timeout_ms)
    # Hardly a traced program connects over the network: it need not load what that takes.
    from stretto.base.network_socket import NetworkSocket

    return NetworkSocket.connect(address, timeout_ms)


def listen(address: str, mode: int = 0o600, group: int | None = None) -> StreamListener:
    """A socket that accepts connections.

    Args:
        address: Of any kind.
        mode: Permissions, where the address is a path.
        group: Group of that path; None for the process's own.

    Raises:
        TransportError: The address can't be used.
    """
    if not is_network(address):
        return UnixListener(address, mode, group)
    from stretto.base.network_socket import NetworkListener

    return NetworkListener(address)
