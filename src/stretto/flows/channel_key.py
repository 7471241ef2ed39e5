"""What names a connection, the same at both ends, without a byte between them.

The kernel gives every socket a cookie that is never used again until the machine restarts. A
connection is named by the cookie of its *client's* socket (which has one connection in its life):

    client   SO_COOKIE of its own socket
    server   sock_diag: own inode -> peer's inode -> peer's cookie

mixed with the machine's boot id and the network namespace. The client knows its key before the
server has accepted, and needs no netlink. The server's question costs some 10 µs, once.

So the server asks as soon as its end is made: of a client that has gone by then nothing is left to
ask. Where the server gets no answer (netlink is forbidden, the client lives in another network
namespace, or has gone) there is no key, and no flow; the reason is counted. Rather than asking the
kernel, two ends may agree on a key: `nonce()`, sent along once by whoever wants to spend the bytes,
or handed to a child by the parent that made its socket pair. Over TCP the addresses of both
ends name a connection for as long as ports aren't used again; that is for who asks for it.
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
    """There is no key; `reason` is one word or two, for the statistics.

    Args:
        reason: Why.
        later: There may be one later.
    """

    def __init__(self, reason: str, *, later: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.later = later


def nonce() -> int:
    """A fresh key, for two ends that agree on one."""
    return int.from_bytes(os.urandom(8)) or 1


def channel_key(end: End | None, *, is_server: bool, tcp: bool = False) -> int:
    """The key of a connection.

    Args:
        end: A connected socket.
        is_server: Which end it is; the other end must say the opposite.
        tcp: Take TCP connections' addresses for their names.

    Raises:
        NoKeyError: It can't be told.
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
    # Asked of our own socket; the peer's namespace is the same, or it isn't found below.
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
    """A 64-bit socket option; 0 where the kernel doesn't know it."""
    try:
        value: int = _COOKIE.unpack(own.getsockopt(socket.SOL_SOCKET, number, _COOKIE.size))[0]
    except (OSError, struct.error):
        return 0
    return value


def _boot_id() -> int:
    global _boot  # read once
    if not _boot:
        try:
            with open(_BOOT_ID, "rb") as file:
                _boot = fnv1a(file.read().strip())
        except OSError:
            _boot = 1  # hidden in some containers: within one machine nothing is lost
    return _boot


_boot = 0


def peer_cookie(own: socket.socket) -> int:
    """The cookie of the socket at the other end of a unix connection, by sock_diag.

    Raises:
        NoKeyError: The kernel doesn't tell.
    """
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
        ) as netlink:
            netlink.settimeout(_TIMEOUT_S)
            _, peer = _ask(netlink, os.fstat(own.fileno()).st_ino)
            if not peer and not _hung_up(own):
                raise NoKeyError("not accepted", later=True)
            if not peer:
                raise NoKeyError("peer gone")
            cookie, _ = _ask(netlink, peer)
    except OSError as error:
        # Another namespace, or a filter of system calls.
        raise _no_key(error, "peer gone" if _hung_up(own) else "peer not found") from error
    return cookie


def _hung_up(own: socket.socket) -> bool:
    """Whether the peer has closed its end, rather than not been accepted yet."""
    poll = select.poll()
    poll.register(own, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _ask(netlink: socket.socket, inode: int) -> tuple[int, int]:
    """Cookie and peer's inode (0: none yet) of a unix socket."""
    request = _REQUEST.pack(
        socket.AF_UNIX, 0, 0, _ANY_COOKIE, inode & 0xFFFFFFFF, _UDIAG_SHOW_PEER,
        _ANY_COOKIE, _ANY_COOKIE,
    )  # fmt: skip
    size = _HEADER.size + len(request)
    netlink.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + request)
    return _parse(netlink.recv(4096))


def _parse(reply: bytes) -> tuple[int, int]:
    if len(reply) < _HEADER.size + 4:
        raise OSError("sock_diag gave too short an answer")
    size, kind, _, _, _ = _HEADER.unpack_from(reply)
    if kind == _NLMSG_ERROR or kind != _SOCK_DIAG_BY_FAMILY:
        raise OSError("sock_diag knows no such socket")
    at = _HEADER.size + _MESSAGE.size
    size = min(size, len(reply))
    if size < at:
        raise OSError("sock_diag gave too short an answer")
    *_, cookie = _MESSAGE.unpack_from(reply, _HEADER.size)
    while at + _ATTRIBUTE.size <= size:
        length, name = _ATTRIBUTE.unpack_from(reply, at)
        if name == _UNIX_DIAG_PEER and length >= 8 and at + 8 <= size:
            return cookie & U64, _U32.unpack_from(reply, at + 4)[0]
        at += max(4, length + 3 & ~3)
    return cookie & U64, 0
