"""TCP and vsock: connections to other machines, or to a virtual machine on this one.

They can't transfer descriptors, so there is no shared memory over them. The peer's identity is
unverified.

Source: docs/formats/ipc.md, "Frames", "Addresses".
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time

from stretto.base.errors import TransportError
from stretto.base.socket_address import parse_tcp, parse_vsock
from stretto.base.stream_socket import BACKLOG, StreamListener, StreamSocket, moved_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Any

    Target = tuple[socket.AddressFamily, Any]
    """An address family, and an address in the socket module's form."""


def resolve(address: str) -> list[Target]:
    """Return the targets of an address, the preferred one first. A DNS look-up may take long.

    Raises:
        TransportError: The text isn't a network address, or its host is unknown.
    """
    if vsock := parse_vsock(address):
        return [(socket.AF_VSOCK, vsock)]
    tcp = parse_tcp(address)
    if tcp is None:
        raise TransportError(f"socket address {address!r}: give host:port or vsock://cid:port")
    try:
        found = socket.getaddrinfo(*tcp, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TransportError(f"socket address {address!r}: no such host: {error}") from error
    return [(family, target) for family, _, _, _, target in found]


class NetworkSocket(StreamSocket):
    """One end of a TCP or vsock connection.

    Args:
        end: A connected stream socket; belongs to this object from now on.
        guarded: Whether to check before each use that the descriptor still belongs to this
            connection.
    """

    __slots__ = ()

    def __init__(self, end: _socket.socket, *, guarded: bool = True) -> None:
        super().__init__(end, guarded=guarded)
        if end.family != socket.AF_VSOCK:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def connect(cls, address: str, timeout_ms: float = 5000) -> NetworkSocket:
        """Connect to a listening socket.

        Args:
            address: `host:port`, `[IPv6]:port` or `vsock://cid:port`.
            timeout_ms: The limit for all addresses of the host together, in ms.

        Raises:
            TransportError: Connecting failed, or the time-out has passed.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        error: OSError = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        for family, target in resolve(address):
            try:
                return cls(moved_up(_connected(family, target, deadline)))
            except OSError as failed:
                error = failed
        raise TransportError(
            f"can't connect to {address}: {error.strerror}; is the tracing service running?"
        ) from error

    @property
    def local_name(self) -> str:
        """The local address, as `ip:port`, `[ip6]:port` or `vsock://cid:port`."""
        return _name(self._socket)


class NetworkListener(StreamListener):
    """A TCP or vsock socket that accepts connections.

    Args:
        address: `host:port`, `[IPv6]:port` or `vsock://cid:port`. Port 0 stands for any free port:
            see `bound_address`.

    Raises:
        TransportError: The address can't be used.
    """

    __slots__ = ()

    def __init__(self, address: str) -> None:
        family, target = resolve(address)[0]
        try:
            listening = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        except OSError as error:
            raise _cannot_listen(address, error) from error
        super().__init__(listening, address)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(target)
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            raise _cannot_listen(address, error) from error

    @property
    def bound_address(self) -> str:
        """The address of the listening socket, as numbers."""
        return _name(self._socket)

    def _connection(self, end: _socket.socket) -> NetworkSocket:
        return NetworkSocket(end, guarded=False)


def _connected(family: socket.AddressFamily, target: Any, deadline: float) -> socket.socket:
    """Return a connected socket.

    Raises:
        OSError: Connecting failed, or the deadline (monotonic clock, in seconds) has passed.
    """
    end = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        end.setblocking(False)
        status = end.connect_ex(target)
        if status == errno.EINPROGRESS:
            status = _wait_connected(end, deadline)
        if status:
            raise OSError(status, os.strerror(status))
    except BaseException:
        end.close()
        raise
    return end


def _wait_connected(end: socket.socket, deadline: float) -> int:
    poll = select.poll()
    poll.register(end, select.POLLOUT)
    if not poll.poll(max(0, deadline - time.monotonic()) * 1000):
        return errno.ETIMEDOUT
    return end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def _name(end: _socket.socket) -> str:
    host, port = end.getsockname()[:2]
    if end.family == socket.AF_VSOCK:
        return f"vsock://{host}:{port}"
    return f"[{host}]:{port}" if end.family == socket.AF_INET6 else f"{host}:{port}"


def _cannot_listen(address: str, error: OSError) -> TransportError:
    return TransportError(
        f"can't listen on {address}: {error.strerror}; is the address this machine's, and free?"
    )
