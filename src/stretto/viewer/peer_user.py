"""Finds the user at the other end of a TCP connection over 127.0.0.1.

The permissions of the service's unix socket protect the traces. Without a check of the user, every
user of the machine could read them through our TCP port.

A unix socket has SO_PEERCRED for such a check. For TCP, the kernel reports the owner of each socket
of this machine, and the peer's socket is one of them. The kernel is queried over netlink. If the
query fails, the kernel's table of all sockets is read:

    sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid …
     3: 0100007F:9C42 0100007F:1F65 01 …                                       1000

An address (32 bits, in the machine's byte order) and its port are hexadecimal numbers.

macOS and Windows don't tell a program whose socket that is: there every user is answered.
"""

from __future__ import annotations

import os
import socket
import struct

from stretto.base.errors import ConfigError
from stretto.base.portable import RECORDS
from stretto.viewer.socket_diag import Address, owner_by_netlink

TABLE = "/proc/net/tcp"
TELLS_USERS = RECORDS
"""Whether the kernel reports the owner of a socket."""
ANYONE = -1
"""The user of each connection if the kernel doesn't."""

_ESTABLISHED = "01"
"""In other states the table has no owner: it lists sockets that were closed as root's."""


def connected_user(connection: socket.socket) -> int | None:
    """Returns the id of the peer's user; None if it can't be determined."""
    if not TELLS_USERS:
        return ANYONE
    try:
        return socket_owner(connection.getpeername(), connection.getsockname())
    except OSError:
        return None  # The peer has disconnected.


def socket_owner(local: Address, remote: Address) -> int | None:
    """Returns the id of the user that owns one socket of an established connection.

    None if there is no such connection.

    Args:
        local: Host and port of that socket.
        remote: Host and port of its peer.
    """
    try:
        return owner_by_netlink(local, remote)
    except OSError:
        return owner_in_table(local, remote)


def owner_in_table(local: Address, remote: Address, table: str = TABLE) -> int | None:
    """Finds the user id of a socket's owner in the kernel's table of all TCP sockets.

    None if the table has no such connection, or can't be read.
    """
    wanted = [_in_table(local), _in_table(remote), _ESTABLISHED]
    try:
        with open(table, encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[1:4] == wanted:
                    return int(words[7])
    except OSError:
        pass
    return None


def allowed_users(names: tuple[str, ...] = ()) -> frozenset[int]:
    """Returns the users that may connect: ours, root, the user of sudo, and the named users.

    Raises:
        ConfigError: A named user doesn't exist, or this system doesn't tell users.
    """
    if not TELLS_USERS:
        if names:
            raise ConfigError("users need Linux: this system doesn't tell who connects")
        return frozenset({ANYONE})
    users = {0, os.geteuid()}
    through_sudo = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and through_sudo.isdecimal():
        users.add(int(through_sudo))
    return frozenset(users.union(map(_user_id, names)))


def _user_id(name: str) -> int:
    from pwd import getpwnam  # Windows doesn't have it.

    try:
        return int(name) if name.isdecimal() else getpwnam(name).pw_uid
    except KeyError:
        raise ConfigError(f"there is no user {name!r}: give a name or a number") from None


def _in_table(address: Address) -> str:
    host, port = address
    (word,) = struct.unpack("=I", socket.inet_aton(host))
    return f"{word:08X}:{port:04X}"
