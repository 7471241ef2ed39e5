"""Stream sockets of any family: connections and listeners, as `ipc` uses them.

`unix_socket` and `network_socket` implement them; `sockets` selects the class by the address. All
sockets are close-on-exec and non-blocking. Sending to a closed peer raises no SIGPIPE. On a unix
socket a message may have one descriptor, which arrives with the message's first bytes.

A program may close all descriptors, including those of connections, and another file may get the
number of such a descriptor. So before each use a system call checks that the descriptor still
refers to the connection. If it refers to another file, that file isn't touched, and the connection
counts as broken.

Connections accepted by a listener omit the check: they belong to a service, and the process of a
service closes no descriptors that it doesn't own.

Source: docs/formats/ipc.md, "Frames".
"""

from __future__ import annotations

# Importing `socket` would take five milliseconds, most of them to make its enumerations.
import _socket as socket
import fcntl
import os
import select
import sys

from stretto.base.errors import TransportError
from stretto.base.own_fd import OwnFd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.peer_credentials import PeerCredentials

HIGH_FD = 768
"""The lowest descriptor of a connection to a service: above the numbers that programs close or
count, and below the usual limit of 1024."""

BACKLOG = 4096
"""The length of the accept queue; the kernel allows at most `net.core.somaxconn`."""

_FD_BYTES = 4
_FD_SPACE = socket.CMSG_SPACE(_FD_BYTES)
_SEND_FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
_RECV_FLAGS = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
_CUT_SHORT = socket.MSG_TRUNC | socket.MSG_CTRUNC


class StreamSocket:
    """One end of a connection.

    Args:
        end: A connected stream socket; owned by this object from now on.
        guarded: Whether to check before each use that the descriptor still belongs to this
            connection.
    """

    __slots__ = ("_own", "_socket")

    def __init__(self, end: socket.socket, *, guarded: bool = True) -> None:
        end.setblocking(False)
        self._socket = end
        self._own = OwnFd(end.fileno()) if guarded else None

    def fileno(self) -> int:
        """Return the descriptor; -1 after `close`."""
        return self._socket.fileno()

    @property
    def local_name(self) -> str:
        """The local address of a network connection, else ""."""
        return ""

    def peer_credentials(self) -> PeerCredentials | None:
        """Return the credentials of the peer; None over a network, where they are unknown."""
        return None

    def send(self, data: bytes | memoryview, fd: int = -1) -> int:
        """Send as many bytes as the kernel accepts now.

        Args:
            data: The bytes to send; not empty.
            fd: A descriptor to send with the first byte; the caller still owns it. -1: none.

        Returns:
            The number of bytes sent; 0: try again when the socket is writable.

        Raises:
            TransportError: The peer has closed the connection.
        """
        ancillary = []
        if fd >= 0:
            encoded = fd.to_bytes(_FD_BYTES, sys.byteorder)
            ancillary.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, encoded))
        self._check()
        try:
            return self._socket.sendmsg([data], ancillary, _SEND_FLAGS)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise TransportError(
                f"can't send: {error.strerror}; the peer has disconnected"
            ) from error

    def recv_into(self, buffer: memoryview) -> tuple[int, int] | None:
        """Receive the available bytes.

        Args:
            buffer: Filled from its start; not empty.

        Returns:
            The number of bytes (0: the peer closed the connection) and a descriptor, owned by the
            caller (-1: none). None if there is no data yet.

        Raises:
            TransportError: The connection broke, or more than one descriptor came.
        """
        self._check()
        try:
            size, ancillary, flags, _ = self._socket.recvmsg_into([buffer], _FD_SPACE, _RECV_FLAGS)
        except BlockingIOError:
            return None
        except OSError as error:
            raise TransportError(
                f"can't receive: {error.strerror}; the peer has disconnected"
            ) from error
        fds = _descriptors(ancillary)
        if flags & _CUT_SHORT or len(fds) > 1:
            for fd in fds:
                os.close(fd)
            raise TransportError("the peer sent more than one descriptor with a message")
        return size, fds[0] if fds else -1

    def wait_readable(self, timeout_ms: float) -> bool:
        """Wait for data or the end of the connection, up to `timeout_ms`; False: time-out."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(max(0, timeout_ms)))

    def shutdown(self) -> None:
        """Shut down both directions, for all processes that share this connection."""
        try:
            if self._own is None or self._own.is_ours:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The connection is shut down already.

    def close(self) -> None:
        """Close the descriptor, unless the program has closed it. Idempotent."""
        if self._own is None or self._own.is_ours:
            self._socket.close()
        else:
            self._socket.detach()

    def _check(self) -> None:
        if self._own is not None and not self._own.is_ours:
            raise TransportError("the program has closed the connection by its descriptor number")


class StreamListener:
    """A socket that accepts connections.

    Args:
        listening: A listening socket; owned by this object from now on.
        address: Its address, for error messages.
    """

    __slots__ = ("_socket", "address")

    def __init__(self, listening: socket.socket, address: str) -> None:
        listening.setblocking(False)
        self._socket = listening
        self.address = address

    def fileno(self) -> int:
        """Return the descriptor; -1 after `close`."""
        return self._socket.fileno()

    def accept(self) -> StreamSocket | None:
        """Accept the next connection; None if there is none now.

        Raises:
            TransportError: Accepting failed; usually no free descriptors are left.
        """
        try:
            # This is what `socket.socket.accept` calls.
            fd, _ = self._socket._accept()  # type: ignore[attr-defined]  # noqa: SLF001
        except (BlockingIOError, ConnectionAbortedError):
            return None
        except OSError as error:
            raise TransportError(
                f"can't accept on {self.address}: {error.strerror}; raise `ulimit -n`"
            ) from error
        return self._connection(socket.socket(fileno=fd))

    def _connection(self, end: socket.socket) -> StreamSocket:
        return StreamSocket(end, guarded=False)

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


def moved_up(end: socket.socket) -> socket.socket:
    """Move a socket to a high descriptor number (`HIGH_FD`), if one is free."""
    try:
        fd = fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        return end
    end.close()
    return socket.socket(end.family, socket.SOCK_STREAM, 0, fd)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            whole = len(data) - len(data) % _FD_BYTES
            fds.extend(memoryview(data[:whole]).cast("i"))
    return fds
