"""Unix stream sockets, which carry file descriptors and the peer's credentials.

Addresses are Perfetto's: a path, or `@name` for an abstract address (Linux).

Source: docs/formats/ipc.md, "Addresses", "Peer identity".
"""

from __future__ import annotations

import _socket as socket
import errno
import os
import stat
import time

from stretto.base.errors import TransportError
from stretto.base.peer_credentials import PeerCredentials
from stretto.base.stream_socket import BACKLOG, StreamListener, StreamSocket, moved_up

MAX_PATH_BYTES = 106
"""The longest address: sun_path has 108 bytes, and Perfetto uses less than 107."""

_UCRED_BYTES = 12
"""The size of a `struct ucred`: pid, uid and gid, 32 bits each."""
_SO_PEERGROUPS = 59  # The socket module lacks this constant.
_MAX_OPTION_BYTES = 1024
_CONNECT_RETRY_MS = 5


def parse_address(address: str) -> str | bytes:
    """Convert the address of a unix socket to the socket module's form.

    Raises:
        TransportError: The address is empty, too long, or not a unix address.
    """
    if not address or "\0" in address:
        raise TransportError(f"socket address {address!r}: give a path, or @name")
    if address.startswith("vsock://"):
        raise TransportError(f"socket address {address!r}: vsock can't pass shared memory")
    encoded = os.fsencode(address)
    if len(encoded) > MAX_PATH_BYTES:
        raise TransportError(
            f"socket address {address!r} has {len(encoded)} bytes: "
            f"at most {MAX_PATH_BYTES} are possible, use a shorter folder"
        )
    return b"\0" + encoded[1:] if encoded.startswith(b"@") else address


class UnixSocket(StreamSocket):
    """One end of a connection between processes of one machine.

    Args:
        end: A connected unix stream socket; owned by this object from now on.
    """

    __slots__ = ()

    @classmethod
    def connect(cls, address: str, timeout_ms: float = 5000) -> UnixSocket:
        """Connect to a listening socket.

        Args:
            address: A path or `@name`.
            timeout_ms: How long to wait while the backlog of the listener is full, in ms.

        Raises:
            TransportError: There is no listener, no permission, or the time-out has passed.
        """
        target = parse_address(address)
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        end.setblocking(False)
        deadline = time.monotonic() + timeout_ms / 1000
        try:
            while True:
                try:
                    end.connect(target)
                    return cls(moved_up(end))
                except BlockingIOError:
                    # The kernel doesn't report when a full backlog has room again.
                    if time.monotonic() >= deadline:
                        raise
                    time.sleep(_CONNECT_RETRY_MS / 1000)
        except OSError as error:
            end.close()
            raise TransportError(
                f"can't connect to {address}: {error.strerror}; is the tracing service running?"
            ) from error

    @classmethod
    def pair(cls) -> tuple[UnixSocket, UnixSocket]:
        """Return two connected sockets."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(one), cls(other)

    def peer_credentials(self) -> PeerCredentials:
        """Return the peer's identity at the time it connected."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED_BYTES)
        pid, uid, gid = memoryview(raw).cast("I")
        return PeerCredentials(pid, uid, gid, self._peer_groups())

    def _peer_groups(self) -> tuple[int, ...]:
        try:
            raw = self._socket.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_OPTION_BYTES)
        except OSError:
            return ()  # The kernel is older than 4.13, or the user is in more groups than fit.
        return tuple(memoryview(raw).cast("I"))


class UnixListener(StreamListener):
    """A socket that accepts connections.

    Args:
        address: A path or `@name`. A stale socket without a listener is replaced; an existing file
            of another kind is not.
        mode: Permissions of the path; set before a peer can connect.
        group: Group of the path; None for the process's own.

    Raises:
        TransportError: The address can't be used.
    """

    __slots__ = ("_inode",)

    def __init__(self, address: str, mode: int = 0o600, group: int | None = None) -> None:
        target = parse_address(address)
        self._inode: tuple[int, int] | None = None
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        super().__init__(listening, address)
        try:
            self._bind(target, mode, group)
            self._socket.listen(BACKLOG)
        except OSError as error:
            self.close()
            raise TransportError(
                f"can't listen on {address}: {error.strerror}; "
                "check the folder, its permissions, and whether another service runs there"
            ) from error

    @classmethod
    def adopt(cls, fd: int) -> UnixListener:
        """Use a listening socket from a service manager. `close` doesn't remove its path.

        Args:
            fd: The descriptor; owned by the new object unless this call fails.

        Raises:
            TransportError: The descriptor isn't a listening unix socket.
        """
        try:
            adopted = socket.socket(fileno=fd)
            listening = adopted.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if adopted.family != socket.AF_UNIX or not listening:
                adopted.detach()
                raise OSError(errno.EINVAL, "it isn't a listening unix socket")
        except OSError as error:
            raise TransportError(f"can't listen on descriptor {fd}: {error.strerror}") from error
        os.set_inheritable(fd, False)
        self = cls.__new__(cls)
        StreamListener.__init__(self, adopted, _address_of(adopted))
        self._inode = None
        return self

    def _bind(self, target: str | bytes, mode: int, group: int | None) -> None:
        if isinstance(target, bytes):
            self._socket.bind(target)
            return
        _remove_stale_socket(target)
        # bind() creates the path with the descriptor's mode minus the umask, so the path never
        # has too many permissions. chmod adds the missing permissions once the group is set.
        os.fchmod(self._socket.fileno(), mode if group is None else mode & 0o700)
        self._socket.bind(target)
        self._inode = _inode(target)
        if group is not None:
            os.chown(target, -1, group)
        os.chmod(target, mode)

    def _connection(self, end: socket.socket) -> UnixSocket:
        return UnixSocket(end, guarded=False)

    def close(self) -> None:
        """Stop listening, and remove the path unless another service has replaced it."""
        if self._socket.fileno() < 0:
            return
        self._socket.close()
        if self._inode is not None and _inode(self.address) == self._inode:
            os.unlink(self.address)


def _remove_stale_socket(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "the path is a file, not a socket")
        if _is_alive(path):
            raise OSError(errno.EADDRINUSE, "another process listens there already")
        os.unlink(path)
    except FileNotFoundError:
        pass


def _is_alive(path: str) -> bool:
    """Whether the socket has a listener, even if it isn't accepting at the moment."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    probe.setblocking(False)
    result = probe.connect_ex(path)
    probe.close()
    if result == errno.EACCES:
        raise OSError(errno.EACCES, "the socket at the path belongs to another user")
    return result != errno.ECONNREFUSED


def _address_of(listener: socket.socket) -> str:
    name = listener.getsockname()
    return "@" + os.fsdecode(name[1:]) if isinstance(name, bytes) else str(name)


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
