"""Names of the kernel's functions, which sessions of linux.ftrace share."""

from __future__ import annotations

from stretto import _native
from stretto.protos.trace import InternedData, InternedString, TracePacket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from stretto.probes.machine import Machine

KALLSYMS = "proc/kallsyms"
RESTRICTION = "proc/sys/kernel/kptr_restrict"
CLEARED = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED


class KernelNames:
    """Names addresses of the kernel.

    The names are read once. When the last session ends they are forgotten, unless one asked to
    retain them: reading takes about 0.1 s, and keeping them 10 MB.

    Args:
        machine: Has the file with the names.
    """

    _read: ClassVar[_native.KernelSymbols | None] = None
    _users: ClassVar[int] = 0
    _retain: ClassVar[bool] = False

    def __init__(self, machine: Machine, *, retain: bool) -> None:
        cls = KernelNames
        cls._users += 1
        cls._retain |= retain
        if cls._read is None:
            cls._read = _read(machine)
        self._symbols = cls._read
        self.count = len(self._symbols) if self._symbols is not None else 0
        """The number of functions; 0 if the kernel hides them."""
        self.memory_kb = self._symbols.memory() // 1024 if self._symbols is not None else 0
        """The memory that the names take."""

    def close(self) -> None:
        """End the use of the names."""
        cls = KernelNames
        cls._users -= 1
        if not cls._users and (not cls._retain or not cls._read):
            cls._read = None
            cls._retain = False

    def interned(self, addresses: Iterable[int]) -> bytes:
        """Return encoded fields of a packet: the names of numbered addresses, the first is 1."""
        if self._symbols is None:
            return b""
        names = []
        for number, address in enumerate(addresses, 1):
            name = self._symbols.symbol(address)
            if name is not None:
                names.append(InternedString(iid=number, str=name))
        if not names:
            return b""
        data = InternedData(kernel_symbols=names)
        return TracePacket(interned_data=data, sequence_flags=CLEARED).encode()


def _read(machine: Machine) -> _native.KernelSymbols | None:
    symbols = _symbols(machine)
    level = machine.read(RESTRICTION).strip()
    if symbols or not level.isdigit() or level == b"0":
        return symbols
    if not machine.write(RESTRICTION, b"0"):
        return None
    try:
        return _symbols(machine)
    finally:
        machine.write(RESTRICTION, level)


def _symbols(machine: Machine) -> _native.KernelSymbols | None:
    try:
        return _native.KernelSymbols(machine.path(KALLSYMS)) or None
    except OSError:
        return None
