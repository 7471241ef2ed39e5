"""Dumps of the heaps of this process's Python: a packet sequence for each memory domain."""

from __future__ import annotations

import os
import threading

from stretto import _pyhooks
from stretto.profilers.heap.heap_sequence import HeapSequence, Moment, coarse_now_ns
from stretto.profilers.heap.stacks import HeapStacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto import _native
    from stretto.profilers.heap.heap_sequence import Row
    from stretto.protos.config import HeapprofdConfig

HEAPS = ("python.raw", "python.mem", "python.obj")
"""The heaps, by the numbers of CPython's memory domains."""


class _PythonHeap:
    """The samples of one memory domain."""

    from_startup = None

    def __init__(self, number: int) -> None:
        self._number = number
        self.name = HEAPS[number]
        self.pid = os.getpid()
        self.start_ns = coarse_now_ns()

    def rows(self, *, everything: bool) -> Sequence[Row]:
        return _pyhooks.heap_dump(self._number, everything)[2]

    def new_stacks(self) -> HeapStacks:
        return HeapStacks()


class Dumps:
    """The dumps of a session.

    Args:
        config: the session's config of the data source.
        make_writer: makes the trace writer of a heap.
    """

    def __init__(
        self, config: HeapprofdConfig, make_writer: Callable[[], _native.TraceWriter]
    ) -> None:
        wanted = config.heaps or HEAPS
        self._at_max = config.dump_at_max
        self._heaps = [
            HeapSequence(_PythonHeap(number), make_writer(), at_max=config.dump_at_max)
            for number, name in enumerate(HEAPS)
            if name in wanted and name not in config.exclude_heaps
        ]
        # A signal handler may end the program during a dump.
        self._lock = threading.RLock()

    def write(self, *, at_end: bool = False) -> None:
        """Write a dump of each heap.

        Args:
            at_end: whether this is the last dump; with `dump_at_max` the others aren't written.
        """
        if at_end or not self._at_max:
            _pyhooks.heap_unsampled(self._write)

    def _write(self) -> None:
        with self._lock:
            moment = Moment.now(_pyhooks.heap_stats())
            for heap in self._heaps:
                heap.dump(moment)

    def free(self) -> None:
        """Write that everything is free, unless the one dump is at the end."""
        if not self._at_max:
            _pyhooks.heap_unsampled(self._write_free)

    def _write_free(self) -> None:
        with self._lock:
            moment = Moment.now(_pyhooks.heap_stats())
            for heap in self._heaps:
                heap.free(moment)

    def clear(self) -> None:
        """Write everything in the next dump."""
        with self._lock:
            for heap in self._heaps:
                heap.clear()

    def reject(self) -> None:
        """Write that another session profiles this process."""
        for heap in self._heaps:
            heap.reject(Moment.now(_pyhooks.heap_stats()))
