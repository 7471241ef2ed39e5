"""The names of a process's sockets, from the tables of /proc/PID/net.

tcp    the peer, 127.0.0.1:5432; of a listening socket its own address, listening on 0.0.0.0:80
udp    the peer, or else its own address
unix   its path, or "unix socket": that of a client has no path, and the table no peers
"""

from __future__ import annotations

import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.probes.machine import Machine

INTERNET = ("tcp", "tcp6", "udp", "udp6")
_LISTENS = "0A"
_LOCAL, _PEER, _STATE, _INODE = 1, 2, 3, 9
_UNIX_INODE, _UNIX_PATH = 6, 7
_MAPPED = "::ffff:"
"""The begin of an IPv4 address in an IPv6 socket."""


def socket_names(machine: Machine, pid: int) -> dict[int, str]:
    """Return the names of all sockets in the network namespace of a process, by inode."""
    names: dict[int, str] = {}
    for table in INTERNET:
        names.update(_internet(machine.read(f"proc/{pid}/net/{table}").decode("ascii", "replace")))
    names.update(_unix(machine.read(f"proc/{pid}/net/unix").decode("utf-8", "replace")))
    return names


def _internet(text: str) -> Iterator[tuple[int, str]]:
    for line in text.splitlines()[1:]:
        row = line.split()
        if len(row) > _INODE and row[_INODE].isdecimal():
            own, peer = _address(row[_LOCAL]), _address(row[_PEER])
            listens = row[_STATE] == _LISTENS
            name = f"listening on {own}" if listens else own if peer.endswith(":0") else peer
            yield int(row[_INODE]), name


def _address(text: str) -> str:
    """Return `127.0.0.1:80` for `0100007F:0050`: words of the address in the machine's order."""
    digits, _, port = text.partition(":")
    words = [int(digits[i : i + 8], 16) for i in range(0, len(digits), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(packed) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, packed)}:{int(port, 16)}"
    name = socket.inet_ntop(socket.AF_INET6, packed)
    mapped = name.startswith(_MAPPED)
    return f"{name.removeprefix(_MAPPED) if mapped else f'[{name}]'}:{int(port, 16)}"


def _unix(text: str) -> Iterator[tuple[int, str]]:
    for line in text.splitlines()[1:]:
        row = line.split(None, _UNIX_PATH)
        if len(row) >= _UNIX_PATH and row[_UNIX_INODE].isdecimal():
            yield int(row[_UNIX_INODE]), "".join(row[_UNIX_PATH:]) or "unix socket"
