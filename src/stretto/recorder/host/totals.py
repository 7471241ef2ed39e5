"""Reads the totals of auto detail, which recorded processes keep in shared memory.

Each process sends the descriptor of its memory over its fork socket. So the totals of processes
that were killed, or still run, are known, too. `native/hooks/shared_totals.h` describes the memory.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from struct import Struct
else:
    from _struct import Struct  # The module `struct` around it takes half a millisecond more.


class FunctionTotals:
    """The totals of one function in one process.

    Args:
        name: the name of the function.
        file: the file with its code.
        line: the first line of its code.
        calls: number of its calls; None if some were not counted.
        own_ns: estimated CPU time in the function itself.
        total_ns: estimated CPU time in the function and what it called.
        waiting_ns: estimated time in the function itself without a CPU.
    """

    def __init__(  # noqa: PLR0917  # the columns of a table
        self,
        name: str,
        file: str,
        line: int,
        calls: int | None,
        own_ns: int,
        total_ns: int,
        waiting_ns: int,
    ) -> None:
        self.name = name
        self.file = file
        self.line = line
        self.calls = calls
        self.own_ns = own_ns
        self.total_ns = total_ns
        self.waiting_ns = waiting_ns


class ProcessTotals:
    """The totals of one process.

    Args:
        pid: its process id, in its own namespace.
        numbers: totals of the process by name; see `_pyhooks.totals`.
        functions: the functions that stack samples have found.
    """

    def __init__(self, pid: int, numbers: dict[str, int], functions: list[FunctionTotals]) -> None:
        self.pid = pid
        self.numbers = numbers
        self.functions = functions


_NUMBERS = Struct("=14Q")
_NAMES = (
    "running_ns", "waiting_ns", "period_ns", "longest_gap_ns", "counted", "threshold_ns",
    "ready_ns", "knows_ready", "sampled", "collections", "collecting_ns",
    "too_deep_ns",
)  # fmt: skip
_FUNCTION = Struct("=7Q")
_MAX_FUNCTIONS = 1 << 13
_TEXT_AT = _NUMBERS.size + _MAX_FUNCTIONS * _FUNCTION.size
_TEXT_BYTES = 1 << 20

MAX_MEMORIES = 256
"""The descriptors that are kept open until the processes of some of them have ended."""


def _word(text: bytes, start: int) -> tuple[str, int]:
    """Return the text at `start`, and where the next one starts."""
    end = text.find(b"\0", start)
    return " ".join(text[start:end].decode("utf-8", "replace").split()), end + 1


def _read_function(fields: tuple[int, ...], text: bytes) -> FunctionTotals:
    calls, uncounted, own, total, waiting, line, at = fields
    name, next_at = _word(text, at)
    file, _ = _word(text, next_at)
    return FunctionTotals(name, file, line, None if uncounted else calls, own, total, waiting)


def read(fd: int) -> ProcessTotals | None:
    """Return the totals in the memory of a process; None if it has written none.

    The process may change the memory meanwhile, and shorten it.
    """
    head = os.pread(fd, _NUMBERS.size, 0)
    if len(head) < _NUMBERS.size:
        return None
    pid, count, *numbers = _NUMBERS.unpack(head)
    if not pid:
        return None
    table = os.pread(fd, min(count, _MAX_FUNCTIONS) * _FUNCTION.size, _NUMBERS.size)
    text = os.pread(fd, _TEXT_BYTES, _TEXT_AT)
    whole = len(table) - len(table) % _FUNCTION.size
    functions = [_read_function(each, text) for each in _FUNCTION.iter_unpack(table[:whole])]
    return ProcessTotals(
        pid,
        dict(zip(_NAMES, numbers, strict=True)),
        [each for each in functions if each.own_ns or each.total_ns or each.waiting_ns],
    )


class SharedTotals:
    """The memories into which the recorded processes write their totals."""

    def __init__(self) -> None:
        self._memories: list[int] = []
        self._read: list[ProcessTotals] = []

    def add(self, fd: int) -> None:
        """Take over the descriptor of a process's memory."""
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return
        self._memories.append(fd)
        if len(self._memories) % MAX_MEMORIES == 0:
            self._close_ended()

    def _close_ended(self) -> None:
        """Read and close the memories of processes that have ended."""
        kept = []
        for fd in self._memories:
            totals = read(fd)
            if totals is None or os.path.exists(f"/proc/{totals.pid}"):
                kept.append(fd)
                continue
            self._read.append(totals)
            os.close(fd)
        self._memories = kept

    def finish(self) -> list[ProcessTotals]:
        """Close all memories, and return the totals of the processes."""
        for fd in self._memories:
            if (totals := read(fd)) is not None:
                self._read.append(totals)
            os.close(fd)
        self._memories = []
        return self._read
