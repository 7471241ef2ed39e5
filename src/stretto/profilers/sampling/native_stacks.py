"""Reads the C functions of threads of a running process that wait, for `stretto dump --native`.

    /proc/PID/task/TID/syscall ─> program counter, stack pointer ─> callers, by `NativeCode`

The kernel tells these registers only of a thread that waits in a system call: others have no C
functions here. No debugger's rights are used to stop a thread. The process runs meanwhile, so
what is read is checked, and a thread that has continued is left out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto import _native
from stretto.base import proc_files
from stretto.profilers.sampling.native_code import NativeCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.profilers.sampling.native_code import NativeFrame


class NativeStacks:
    """The stacks of one process.

    Raises:
        OSError: The process has ended, or can't be read.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._waits = {tid: self._wait_of(tid) for tid in _threads(pid)}
        self._code = NativeCode(pid)

    def of_thread(self, tid: int) -> list[NativeFrame] | None:
        """Return the calls of a thread, the innermost first.

        Returns:
            As many as are found; None if the thread runs, or has run since this object was made.
        """
        wait = self._waits.get(tid)
        if wait is None:
            return None
        *_, sp, pc = wait
        places = _native.native_stack(self._pid, self._code.ranges, int(pc, 16), int(sp, 16))
        frames = [self._code.frame(place) for place in places]
        return frames if self._wait_of(tid) == wait else None

    def _wait_of(self, tid: int) -> list[str] | None:
        """Return the numbers of a thread's system call, which end with sp and pc."""
        words = proc_files.read(self._pid, f"task/{tid}/syscall").decode().split()
        return words if len(words) >= 3 else None


def _threads(pid: int) -> Iterable[int]:
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
