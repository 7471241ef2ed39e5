"""How often the threads of a process have handed the GIL to each other.

CPython counts this itself (`switch_number` of its GIL, 3.12 and later), so the count costs the
process nothing: it is read from outside. A thread that takes the GIL again, without another one in
between, is no switch.
"""

from __future__ import annotations

from stretto._native import read_process_memory
from stretto.base.errors import StrettoError
from stretto.profilers.sampling.process import find_python

_AFTER_LOCKED = 8
"""Where the count is, after the GIL's member `locked`, in bytes."""


class GilSwitches:
    """Counts the switches of processes."""

    def __init__(self) -> None:
        self._addresses: dict[int, int] = {}
        """The address of the count, by pid; 0 if the process has none that can be read."""

    def count(self, pid: int) -> int | None:
        """Return the switches since the process began; None if they aren't known."""
        if pid not in self._addresses:
            self._addresses[pid] = _address(pid)
        try:
            return self._read(pid)
        except OSError:  # It has ended, or runs another program.
            self._addresses.pop(pid)
            return None

    def _read(self, pid: int) -> int | None:
        address = self._addresses[pid]
        return int.from_bytes(read_process_memory(pid, address, 8), "little") if address else None


def _address(pid: int) -> int:
    try:
        _, locked = find_python(pid).gil()
    except (StrettoError, OSError):
        return 0
    return locked + _AFTER_LOCKED if locked else 0
