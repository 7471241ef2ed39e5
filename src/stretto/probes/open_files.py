"""The names of the files and peers behind descriptors of processes.

    /proc/PID/fd/3 ──> /var/lib/shop/orders.db      a file
                   ──> socket:[4711] ──> tables     a peer, 10.0.0.7:5432 (socket_names.py)
                   ──> pipe:[815]                   what else the kernel calls it

A name is looked up once, and kept until the descriptor is closed. The owner of this object tells
that; it sees all system calls.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from stretto.probes.socket_names import socket_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.machine import Machine

MAX_NAMES = 1 << 14
"""The most names of a process, and the most processes."""
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class OpenFile(NamedTuple):
    """What a descriptor refers to.

    Attributes:
        name: The path, the address of the peer, or what the kernel calls it.
        is_socket: Whether it is a socket.
        read_ns: The time at which it was read.
    """

    name: str
    is_socket: bool
    read_ns: int


class OpenFiles:
    """The descriptors of processes whose names are known.

    Args:
        machine: Has the folder `proc`.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._known: dict[int, dict[int, OpenFile]] = {}
        self._sockets: dict[int, dict[int, str]] = {}
        """The tables of sockets by process."""
        self._table_reads: Counter[int] = Counter()

    def name(self, pid: int, fd: int) -> OpenFile | None:
        """Return what a descriptor refers to now; None if that can't be found out.

        Args:
            pid: The process.
            fd: The descriptor; negative: none.
        """
        if fd < 0:
            return None
        if pid not in self._known and len(self._known) >= MAX_NAMES:
            self._known.clear()  # Most of these processes have ended.
        known = self._known.setdefault(pid, {})
        found = known.get(fd)
        if found is None:
            found = self._look_up(pid, fd)
            if len(known) >= MAX_NAMES:
                known.clear()
            if found is not None:
                known[fd] = found
        return found

    def closed(self, pid: int, fd: int) -> None:
        """Forget a descriptor, which may be used again for another file."""
        self._known.get(pid, {}).pop(fd, None)

    def forget(self, pid: int) -> None:
        """Forget all descriptors of a process."""
        self._known.pop(pid, None)

    def forget_tables(self) -> None:
        """Read the tables of sockets again when the next new socket is looked up."""
        self._sockets.clear()
        self._table_reads.clear()

    def _look_up(self, pid: int, fd: int) -> OpenFile | None:
        name = self._machine.link(f"proc/{pid}/fd/{fd}")
        read_ns = self._machine.now_ns()
        if not name:
            return None
        socket = _SOCKET.fullmatch(name)
        if socket is not None:
            name = self._socket_name(pid, int(socket[1]))
        return OpenFile(name, socket is not None, read_ns) if name else None

    def _socket_name(self, pid: int, inode: int) -> str:
        """Return the name of a socket; "" if it is not connected yet, or of an unknown kind.

        The tables may be long, and those that were read may lack a new socket: they are read at
        most twice until `forget_tables`.
        """
        while inode not in self._sockets.get(pid, {}):
            if self._table_reads[pid] == 2:
                return ""
            self._table_reads[pid] += 1
            self._sockets[pid] = socket_names(self._machine, pid)
        return self._sockets[pid][inode]
