"""The data source `python.heap`, which profiles the memory of this process.

Its config is Perfetto's HeapprofdConfig, as for the data source `android.heapprofd`:

    sampling_interval_bytes         bytes between two samples on average; default 65,536
    continuous_dump_config          dumps in regular intervals: dump_phase_ms, dump_interval_ms
    dump_at_max                     one dump at the end, of the moment when most was held
    heaps, exclude_heaps            python.obj, python.mem, python.raw
    pid, process_cmdline            profile only these processes
    adaptive_sampling_max_sampling_interval_bytes
                                    how far the interval may double; default 64 times

Functions that hold or allocate most memory have counter tracks (`function_counters.py`).

Dumps are written at the end, also at one by `os._exit`, `os.abort` and exec, in intervals, when a
consumer asks for a flush or a snapshot, and when the program calls
`stretto.profilers.heap.dump()`. Periodic flushes of a service write no dump: they come twice a
second.

If samples take more than 5 % of the CPU time of the process, the interval doubles; the dumps have
both intervals. A process has one profile at a time: of a second session it is refused, with
`rejected_concurrent` in the trace.

This module is imported by every connected program, so it imports little.
"""

from __future__ import annotations

import os

import stretto
from stretto import _native
from stretto.client import postponed
from stretto.profilers.heap.selected_processes import is_selected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.client.timer import Timer
    from stretto.profilers.heap.dumps import Dumps
    from stretto.profilers.heap.function_counters import FunctionCounters
    from stretto.profilers.patch import Patch
    from stretto.protos.config import HeapprofdConfig

DEFAULT_INTERVAL = 65_536
MAX_INTERVAL = 1 << 40
CPU_LIMIT = 50
"""The largest share of the CPU time that samples may take, in thousandths."""
_MAX_DOUBLED = 64

_REASON_MASK, _PERIODIC = 0xF, 1
"""Perfetto's FlushFlags: the bits of the reason, and the reason of periodic flushes."""


class HeapProfile(stretto.DataSource):
    """A session's profile of this process."""

    name = "python.heap"
    buffer_exhausted_policy = _native.STALL_THEN_DROP

    _dumps: Dumps | None = None
    _counters: FunctionCounters | None = None
    _timers: Sequence[Timer] = ()
    _profiles = False

    def on_start(self) -> None:
        """Start the profile, if the session wants this process."""
        from stretto.profilers.heap.dumps import Dumps
        from stretto.protos.config import HeapprofdConfig

        config = self.config.heapprofd_config or HeapprofdConfig()
        if not is_selected(config):
            return
        self._dumps = Dumps(config, self._writer_of_a_heap)
        self._profiles = _start_sampling(config)
        if not self._profiles:
            self._dumps.reject()
            self._dumps = None
            return
        _watch_ends()
        self._start_counters()
        times = config.continuous_dump_config
        if times is not None and times.dump_interval_ms and not config.dump_at_max:
            self._start_timer(self.dump, times.dump_phase_ms / 1000, times.dump_interval_ms / 1000)

    def _start_counters(self) -> None:
        from stretto.profilers.heap.function_counters import PERIOD_S, FunctionCounters

        self._counters = FunctionCounters(self.write)
        self._start_timer(self._counters.look, 0, PERIOD_S)

    def _start_timer(
        self, function: Callable[[], object], phase_s: float, interval_s: float
    ) -> None:
        from stretto.client.timer import Timer

        timer = Timer(function, phase_s, interval_s)
        self._timers = [*self._timers, timer]
        timer.start()

    def _writer_of_a_heap(self) -> _native.TraceWriter:
        return _native.TraceWriter(self.arbiter, self.target_buffer, self.buffer_exhausted_policy)

    def dump(self) -> None:
        """Write what has changed since the last dump; nothing with `dump_at_max`."""
        if self._dumps is not None:
            self._dumps.write()

    def dump_before_end(self, *, is_exec: bool) -> None:
        """Write the last dump: this program ends now, without exit handlers.

        Args:
            is_exec: Whether another program takes its place; then its memory is shown as free. If
                that fails, the next dump has everything again.
        """
        if self._dumps is not None:
            self._dumps.write(at_end=not is_exec)
            if is_exec:
                self._dumps.free()
            self.arbiter.flush()

    def on_flush(self) -> None:
        """Write a dump, unless the flush is a periodic one."""
        if self.flush_flags & _REASON_MASK != _PERIODIC:
            self.dump()

    def on_clear_incremental_state(self) -> None:
        """Write everything in the next dump: the service may have overwritten the last ones."""
        if self._dumps is not None:
            self._dumps.clear()
        if self._counters is not None:
            self._counters.clear()

    def on_stop(self) -> None:
        """Write the last dump, and stop sampling."""
        for timer in self._timers:
            timer.stop()
        self._timers = ()
        if self._counters is not None:
            self._counters.look()
            self._counters = None
        if self._dumps is not None:
            self._dumps.write(at_end=True)
            self._dumps = None
        self._stop_sampling()

    def forget(self) -> None:
        """Drop the parent's samples in the child of a fork."""
        for timer in self._timers:
            timer.forget()
        self._timers = ()
        self._dumps = self._counters = None
        self._stop_sampling()
        super().forget()

    def _stop_sampling(self) -> None:
        if self._profiles:
            from stretto import _pyhooks

            self._profiles = False
            _pyhooks.heap_stop()


def dump() -> int:
    """Write a dump of the heap into each session that profiles this process.

    Returns:
        The number of these sessions: 0 or 1.
    """
    running = HeapProfile.instances()
    for profile in running:
        profile.dump()
    return len(running)


_ends: list[Patch] = []
"""Observers of the functions that end the program without exit handlers."""


def _watch_ends() -> None:
    from stretto.profilers.patch import Patch

    if not _ends:
        _ends[:] = [
            *(Patch("os", name, _before_end) for name in ("_exit", "abort")),
            *(Patch("os", name, _before_exec) for name in ("execv", "execve")),
        ]
        for patch in _ends:
            patch.switch(True)


def _before_end(*_: object, **__: object) -> None:
    _dump_before_end(is_exec=False)


def _before_exec(path: str | int, *_: object, **__: object) -> None:
    # `os.execvp` tries the folders of PATH.
    if isinstance(path, int) or os.access(path, os.X_OK):
        _dump_before_end(is_exec=True)


def _dump_before_end(*, is_exec: bool) -> None:
    if not postponed.is_waiting():  # Else it is an unconnected child, with the parent's profile.
        for profile in HeapProfile.instances():
            profile.dump_before_end(is_exec=is_exec)


def _start_sampling(config: HeapprofdConfig) -> bool:
    """Start the native sampler; return False if another session has it."""
    from stretto import _pyhooks

    interval = min(config.sampling_interval_bytes or DEFAULT_INTERVAL, MAX_INTERVAL)
    most = config.adaptive_sampling_max_sampling_interval_bytes or interval * _MAX_DOUBLED
    try:
        _pyhooks.heap_start(interval, limit=CPU_LIMIT, max_interval=min(most, MAX_INTERVAL))
    except RuntimeError:
        return False
    return True
