"""Unix stream sockets that carry file descriptors and know who is at the other end.

Addresses are Perfetto's: a path, or `@name` for an abstract one (Linux). All
sockets are close-on-exec and non-blocking; a peer that died raises no SIGPIPE.
One descriptor may travel with a message, and arrives with its first bytes.

Source: perfetto-abi 2.1, 2.2, 2.5.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import stat
import struct
import time

from stretto.base.errors import TransportError

MAX_PATH_BYTES = 106
"""Longest address: sun_path has 108 bytes, and Perfetto keeps it below 107."""

HIGH_FD = 768
"""Where connections to a service lie: out of the way of programs that close or count the low
numbers, and below the usual limit of 1024."""

_UCRED = struct.Struct("iII")
_GID = struct.Struct("I")
_SO_PEERGROUPS = 59  # the socket module doesn't have it
_MAX_OPTION_BYTES = 1024
_FD = struct.Struct("i")
_FD_SPACE = socket.CMSG_SPACE(_FD.size)
# Plain numbers: the operators of IntFlag are Python functions, and would be in every trace.
_SEND_FLAGS = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
_RECV_FLAGS = int(socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
_CUT_SHORT = int(socket.MSG_TRUNC | socket.MSG_CTRUNC)
_CONNECT_RETRY_MS = 5
_BACKLOG = 128


def parse_address(address: str) -> str | bytes:
    """The socket module's form of a unix socket address.

    Raises:
        TransportError: Empty, too long, or not a unix address.
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


class PeerCredentials:
    """Who connected, as the kernel says it; `groups` are those besides `gid`."""

    __slots__ = ("gid", "groups", "pid", "uid")

    def __init__(self, pid: int, uid: int, gid: int, groups: tuple[int, ...] = ()) -> None:
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = groups


class UnixSocket:
    """One end of a connection.

    Args:
        end: A connected stream socket; belongs to this object from now on.
    """

    __slots__ = ("_socket",)

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end

    @classmethod
    def connect(cls, address: str, timeout_ms: float = 5000) -> UnixSocket:
        """Connect to a listening socket.

        Args:
            address: A path or `@name`.
            timeout_ms: How long to wait while its queue of connections is full.

        Raises:
            TransportError: Nobody listens there, no permission, time-out.
        """
        target = parse_address(address)
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        end.setblocking(False)
        deadline = time.monotonic() + timeout_ms / 1000
        try:
            while True:
                try:
                    end.connect(target)
                    return cls(_moved_up(end))
                except BlockingIOError:
                    # The backlog is full. Nothing can be polled for that.
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
        """Two ends that are connected to each other."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(one), cls(other)

    def fileno(self) -> int:
        """The descriptor, -1 after `close`."""
        return self._socket.fileno()

    def send(self, data: bytes | memoryview, fd: int = -1) -> int:
        """Send what the kernel takes now.

        Args:
            data: Not empty.
            fd: Travels with the first byte; stays the caller's.

        Returns:
            Bytes that were taken; 0: none, try again when writable.

        Raises:
            TransportError: The peer has gone.
        """
        ancillary = [] if fd < 0 else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _FD.pack(fd))]
        try:
            return self._socket.sendmsg([data], ancillary, _SEND_FLAGS)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise TransportError(f"can't send: {error.strerror}; the peer has gone") from error

    def recv_into(self, buffer: memoryview) -> tuple[int, int] | None:
        """Receive what is there.

        Args:
            buffer: Filled from its start; not empty.

        Returns:
            Bytes (0: the peer closed) and a descriptor (-1: none), which is the
            caller's; None if nothing is there yet.

        Raises:
            TransportError: The connection broke, or more than one descriptor came.
        """
        try:
            size, ancillary, flags, _ = self._socket.recvmsg_into([buffer], _FD_SPACE, _RECV_FLAGS)
        except BlockingIOError:
            return None
        except OSError as error:
            raise TransportError(f"can't receive: {error.strerror}; the peer has gone") from error
        fds = _descriptors(ancillary)
        if flags & _CUT_SHORT or len(fds) > 1:
            for fd in fds:
                os.close(fd)
            raise TransportError("the peer sent more than one descriptor with a message")
        return size, fds[0] if fds else -1

    def wait_readable(self, timeout_ms: float) -> bool:
        """Block until there is input or the peer has gone; False after the time-out."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(max(0, timeout_ms)))

    def peer_credentials(self) -> PeerCredentials:
        """The peer's identity at the time it connected."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        pid, uid, gid = _UCRED.unpack(raw)
        return PeerCredentials(pid, uid, gid, self._peer_groups())

    def _peer_groups(self) -> tuple[int, ...]:
        try:
            raw = self._socket.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_OPTION_BYTES)
        except OSError:
            return ()  # a kernel before 4.13, or a user in more groups than that
        return tuple(gid for (gid,) in _GID.iter_unpack(raw))

    def shutdown(self) -> None:
        """End both directions for every process that holds this connection."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is down already

    def close(self) -> None:
        """Close our descriptor; harmless if it is closed, by the program behind our back too."""
        try:
            self._socket.close()
        except OSError:
            pass  # the number isn't ours any more


class UnixListener:
    """A socket that accepts connections.

    Args:
        address: A path or `@name`. A socket that lies there from an earlier run
            is replaced; anything else is not.
        mode: Permissions of the path. They hold before anyone can connect.

    Raises:
        TransportError: The address can't be used.
    """

    __slots__ = ("_inode", "_socket", "address")

    def __init__(self, address: str, mode: int = 0o600) -> None:
        target = parse_address(address)
        self.address = address
        self._inode: tuple[int, int] | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        try:
            self._bind(target, mode)
            self._socket.listen(_BACKLOG)
        except OSError as error:
            self._socket.close()
            raise TransportError(
                f"can't listen on {address}: {error.strerror}; "
                "check the folder, its permissions, and whether another service runs there"
            ) from error

    def _bind(self, target: str | bytes, mode: int) -> None:
        if isinstance(target, bytes):
            self._socket.bind(target)
            return
        _remove_stale_socket(target)
        # The path gets the descriptor's mode less the umask: never too open, and
        # chmod adds what the umask took.
        os.fchmod(self._socket.fileno(), mode)
        self._socket.bind(target)
        os.chmod(target, mode)
        self._inode = _inode(target)

    def fileno(self) -> int:
        """The descriptor, -1 after `close`."""
        return self._socket.fileno()

    def accept(self) -> UnixSocket | None:
        """The next connection; None if there is none now.

        Raises:
            TransportError: No descriptors left, or the like.
        """
        try:
            end, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return None
        except OSError as error:
            raise TransportError(
                f"can't accept on {self.address}: {error.strerror}; raise `ulimit -n`"
            ) from error
        return UnixSocket(end)

    def close(self) -> None:
        """Stop listening and remove the path, unless another service took it over."""
        if self._socket.fileno() < 0:
            return
        self._socket.close()
        if self._inode is not None and _inode(self.address) == self._inode:
            os.unlink(self.address)


def _moved_up(end: socket.socket) -> socket.socket:
    """The socket under a high number, or as it is where there is no room."""
    try:
        fd = fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:
        return end
    end.close()
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            whole = len(data) - len(data) % _FD.size
            fds.extend(fd for (fd,) in _FD.iter_unpack(data[:whole]))
    return fds


def _remove_stale_socket(path: str) -> None:
    try:
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
        else:
            raise OSError(errno.EEXIST, "there is a file that is no socket")
    except FileNotFoundError:
        pass


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
