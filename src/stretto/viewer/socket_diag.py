"""Queries the kernel for one TCP socket of this machine, over netlink (sock_diag).

    request    nlmsghdr, inet_diag_req_v2 with both addresses
    answer     nlmsghdr, inet_diag_msg: state, …, uid                     or an error number

A query takes the same time for any number of sockets. /proc/net/tcp lists all sockets, and any user
can make that list long.
"""

from __future__ import annotations

import errno
import os
import socket
import struct

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_ANY_STATE = _ANY_COOKIE = 0xFFFFFFFF
_ESTABLISHED = 1

_HEADER = struct.Struct("=IHHII")  # Fields: length, type, flags, sequence number, port.
_REQUEST = struct.Struct("=BBBxI")  # Fields: family, protocol, extensions, states.
_PORTS = struct.Struct("!HH")
_ADDRESSES = struct.Struct("4s12x4s12x")
_INTERFACE_AND_COOKIE = struct.Struct("=III")
_ID_BYTES = _PORTS.size + _ADDRESSES.size + _INTERFACE_AND_COOKIE.size
_ANSWER = struct.Struct(f"=BBBB{_ID_BYTES}xIIIII")
"""Family, state, timer, retransmissions, expiry, two queues, uid, inode."""
_ANSWER_MAX_BYTES = 4096

Address = tuple[str, int]


def owner_by_netlink(local: Address, remote: Address) -> int | None:
    """Returns the user id of the owner of an established connection from `local` to `remote`.

    None if there is no such connection.

    Raises:
        OSError: The kernel doesn't support sock_diag, or doesn't permit it.
    """
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG) as kernel:
        kernel.send(_request(local, remote))
        # The kernel has queued the answer when `send` returns.
        return _owner(kernel.recv(_ANSWER_MAX_BYTES, socket.MSG_DONTWAIT))


def _request(local: Address, remote: Address) -> bytes:
    body = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, _ANY_STATE)
    body += _PORTS.pack(local[1], remote[1])
    body += _ADDRESSES.pack(socket.inet_aton(local[0]), socket.inet_aton(remote[0]))
    body += _INTERFACE_AND_COOKIE.pack(0, _ANY_COOKIE, _ANY_COOKIE)
    size = _HEADER.size + len(body)
    return _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + body


def _owner(answer: bytes) -> int | None:
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        if code == -errno.ENOENT:
            return None
        raise OSError(-code, os.strerror(-code))
    if kind != _SOCK_DIAG_BY_FAMILY or len(answer) < _HEADER.size + _ANSWER.size:
        raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
    fields = _ANSWER.unpack_from(answer, _HEADER.size)
    # In other states the owner is unknown: closed sockets are listed with user id 0.
    return int(fields[7]) if fields[1] == _ESTABLISHED else None
