"""Keys of connections: equal at both ends, without sending a byte.

The kernel gives every socket a cookie that is unique until the machine restarts. A connection is
identified by the cookie of its *client's* socket, which has one connection in its lifetime:

    client   SO_COOKIE of its own socket
    server   sock_diag: own inode -> peer's inode -> peer's cookie

The key combines this cookie with the machine's boot id and the network namespace. The client can
compute the key before the server has accepted, and without netlink. The server's query takes some
10 µs, once.

The server queries the kernel as soon as its end is made, because the query fails once the client
has closed. It also fails if netlink is forbidden, or if the client is in another network namespace.
Then there is no key, and no flow; the reason is counted.

Two ends may also agree on a key, without the kernel. One end makes it by `nonce()` and sends it
once, or a parent passes it to a child with a socket pair.

TCP connections can be identified by the addresses of both ends, as long as ports aren't reused;
this is optional.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct

from stretto.base.errors import StrettoError
from stretto.base.hashes import fnv1a
from stretto.flows.mixing import U64, combine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.rpc_hooks import End

_SO_COOKIE = 57
_SO_NETNS_COOKIE = 71

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_UDIAG_SHOW_PEER = 4
_UNIX_DIAG_PEER = 2
_ANY_COOKIE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBHIIIII")
_MESSAGE = struct.Struct("=BBBBIQ")
_ATTRIBUTE = struct.Struct("=HH")
_U32 = struct.Struct("=I")
_COOKIE = struct.Struct("=Q")
_TIMEOUT_S = 0.2

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class NoKeyError(StrettoError):
    """Raised if a connection has no key.

    Args:
        reason: The reason, a short text for the statistics.
        later: Whether a later attempt may succeed.
    """

    def __init__(self, reason: str, *, later: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.later = later


def nonce() -> int:
    """Return a new random key. It isn't 0."""
    return int.from_bytes(os.urandom(8)) or 1


def channel_key(end: End | None, *, is_server: bool, tcp: bool = False) -> int:
    """Return the key of a connection.

    Args:
        end: A connected socket.
        is_server: Which end it is; the other end must have the opposite value.
        tcp: Whether to identify TCP connections by their addresses.

    Raises:
        NoKeyError: The key can't be determined.
    """
    if end is None:
        raise NoKeyError("no socket")
    try:
        with socket.socket(fileno=os.dup(end.fileno())) as own:
            if own.family == socket.AF_UNIX:
                return _unix_key(own, is_server=is_server)
            if tcp and own.family in (socket.AF_INET, socket.AF_INET6):
                return _tcp_key(own, is_server=is_server)
    except (OSError, ValueError) as error:
        raise _no_key(error, "not connected") from error
    raise NoKeyError("not a unix socket")


def _no_key(error: Exception, reason: str) -> NoKeyError:
    number = error.errno if isinstance(error, OSError) else 0
    if number in (errno.EMFILE, errno.ENFILE):
        return NoKeyError("no free descriptor", later=True)
    return NoKeyError("not a socket" if number == errno.ENOTSOCK else reason)


def _unix_key(own: socket.socket, *, is_server: bool) -> int:
    # Both ends have the same namespace: `peer_cookie` finds no peer in another one.
    namespace = _option(own, _SO_NETNS_COOKIE)
    cookie = peer_cookie(own) if is_server else _option(own, _SO_COOKIE)
    if not cookie:
        raise NoKeyError("no cookies")
    return combine(_boot_id(), namespace, cookie)


def _tcp_key(own: socket.socket, *, is_server: bool) -> int:
    ends = [own.getsockname()[:2], own.getpeername()[:2]]
    client, server = reversed(ends) if is_server else ends
    return combine(*(fnv1a(repr(end).encode()) for end in (client, server)))


def _option(own: socket.socket, number: int) -> int:
    """Return a 64-bit socket option; 0 if the kernel doesn't support it."""
    try:
        value: int = _COOKIE.unpack(own.getsockopt(socket.SOL_SOCKET, number, _COOKIE.size))[0]
    except (OSError, struct.error):
        return 0
    return value


def _boot_id() -> int:
    global _boot  # The boot id is read from its file only once.
    if not _boot:
        try:
            with open(_BOOT_ID, "rb") as file:
                _boot = fnv1a(file.read().strip())
        except OSError:
            # Some containers hide the boot id. Without it, keys are still unique within
            # a machine.
            _boot = 1
    return _boot


_boot = 0


def peer_cookie(own: socket.socket) -> int:
    """Return the cookie of the socket at the other end of a unix connection, by sock_diag.

    Raises:
        NoKeyError: The kernel doesn't return it.
    """
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
        ) as netlink:
            netlink.settimeout(_TIMEOUT_S)
            _, peer = _query(netlink, os.fstat(own.fileno()).st_ino)
            if not peer and not _peer_has_closed(own):
                raise NoKeyError("not accepted", later=True)
            if not peer:
                raise NoKeyError("peer gone")
            cookie, _ = _query(netlink, peer)
    except OSError as error:
        # If the peer is not gone, it is in another namespace, or a seccomp filter forbids netlink.
        reason = "peer gone" if _peer_has_closed(own) else "peer not found"
        raise _no_key(error, reason) from error
    return cookie


def _peer_has_closed(own: socket.socket) -> bool:
    """Whether the peer has closed its end; False if the connection isn't accepted yet."""
    poll = select.poll()
    poll.register(own, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _query(netlink: socket.socket, inode: int) -> tuple[int, int]:
    """Return the cookie and the peer's inode (0: none yet) of a unix socket."""
    request = _REQUEST.pack(
        socket.AF_UNIX, 0, 0, _ANY_COOKIE, inode & 0xFFFFFFFF, _UDIAG_SHOW_PEER,
        _ANY_COOKIE, _ANY_COOKIE,
    )  # fmt: skip
    size = _HEADER.size + len(request)
    netlink.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + request)
    return _parse(netlink.recv(4096))


def _parse(reply: bytes) -> tuple[int, int]:
    if len(reply) < _HEADER.size + 4:
        raise OSError("the reply of sock_diag is too short")
    size, kind, _, _, _ = _HEADER.unpack_from(reply)
    if kind == _NLMSG_ERROR or kind != _SOCK_DIAG_BY_FAMILY:
        raise OSError("sock_diag has no such socket")
    at = _HEADER.size + _MESSAGE.size
    size = min(size, len(reply))
    if size < at:
        raise OSError("the reply of sock_diag is too short")
    *_, cookie = _MESSAGE.unpack_from(reply, _HEADER.size)
    while at + _ATTRIBUTE.size <= size:
        length, name = _ATTRIBUTE.unpack_from(reply, at)
        if name == _UNIX_DIAG_PEER and length >= 8 and at + 8 <= size:
            return cookie & U64, _U32.unpack_from(reply, at + 4)[0]
        at += max(4, length + 3 & ~3)
    return cookie & U64, 0
