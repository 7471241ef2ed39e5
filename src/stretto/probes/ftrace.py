"""`linux.ftrace`: events of the kernel, each session in a private instance of tracefs.

    start      instance, clock, buffers, events; then recording is switched on
    each tick  the pages of each CPU are read and converted natively, and those of a full buffer
               at once
    flush      all pages, and FtraceStats of the start and of now
    stop       the instance is removed; if the user has named it, its state is restored

If the set-up fails, a FtraceStats packet gives the reason, and the session has no events.
"""

from __future__ import annotations

import os
import re
from functools import partial

from stretto import _native
from stretto.probes import ftrace_kprobes
from stretto.probes.budget import Budget
from stretto.probes.ftrace_clock import ClockReader
from stretto.probes.ftrace_setup import Setup, open_folder
from stretto.probes.ftrace_symbols import KernelNames
from stretto.probes.probe import SLOW, Probe
from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import FtraceConfig
from stretto.protos.trace import FtraceStats, TracePacket
from stretto.protozero.wire import bytes_field, varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from stretto.probes.ftrace_kprobes import Kprobes
    from stretto.probes.poll import Poll
    from stretto.probes.tracefs import Instance

DRAIN_PERIOD_MS = {True: 500, False: 100}
"""How often the buffers are read, by whether a buffer that is half full is read at once."""
MAX_DRAIN_PERIOD_MS = 60_000
BATCH_KB = 128
MAX_BATCHES = 8
"""The most batches of pages that a tick reads for a CPU; the next tick reads the rest."""
LARGE_MACHINE_KB = 7 << 20
BUFFER_KB = {True: 8192, False: 2048}
"""The buffer of each CPU, by whether the machine has LARGE_MACHINE_KB of memory or more."""
TIMESTAMP, STATS = (TracePacket.LAYOUT.field(name).number for name in ("timestamp", "ftrace_stats"))
PHASE, PARSE_ERRORS = (
    FtraceStats.LAYOUT.field(name).number for name in ("phase", "ftrace_parse_errors")
)
END_OF_TRACE = varint_field(PHASE, FtraceStats.END_OF_TRACE)
HIDDEN_NAMES = "symbolize_ksyms: the kernel hides its symbols (kptr_restrict)"


class Ftrace(Probe):
    """Records the events that a session's FtraceConfig names."""

    name = "linux.ftrace"
    tracefs: ClassVar[type[Tracefs]] = Tracefs

    def start(self) -> None:
        self._options = self.config.ftrace_config or FtraceConfig()
        self.instance: Instance | None = None
        self._pipes: dict[int, int] = {}
        self._poll: Poll | None = None
        self._watching_later: object = None
        self._kprobes: Kprobes | None = None
        self._names: KernelNames | None = None
        self._first_stats = FtraceStats(phase=FtraceStats.START_OF_TRACE)
        try:
            tracefs = self.tracefs(self.machine.path(""))
            tracefs.remove_left()
            ftrace_kprobes.remove_left(tracefs)
            self.instance = open_folder(tracefs, self._options)
            self._set_up(self.instance, tracefs)
        except TracefsError as error:
            self._first_stats.exclusive_feature_error = str(error)
            self.write(TracePacket(ftrace_stats=self._first_stats))
            self.machine.tell(f"{self.name}: {error}")
            self.stop()

    def stop(self) -> None:
        if self.instance is None:
            return
        if self._poll is not None:
            self._poll.stop()
            self._unwatch()
            self.instance.write("tracing_on", "0")
            self.flush()
            self._poll = None
        for fd in self._pipes.values():
            os.close(fd)
        self._pipes.clear()
        self.instance.close()
        self.instance = None
        if self._kprobes is not None:
            self._kprobes.remove()
        if self._names is not None:
            self._names.close()
            self._names = None

    def flush(self) -> None:
        """Write all recorded events, and the statistics of the start and of now."""
        if self.instance is None or self._poll is None:
            return
        self._read(self._all_pipes, self._batches_per_buffer)
        self.write(self._first_packet)
        self.write(self._last_packet())

    # --- set-up

    def _set_up(self, instance: Instance, tracefs: Tracefs) -> None:
        options, first = self._options, self._first_stats
        setup = Setup(tracefs, instance, options, self._buffer_kb())
        self._kprobes = setup.kprobes
        first.unknown_ftrace_events = setup.unknown
        first.failed_ftrace_events = setup.failed
        self._report(setup.problems)
        self._cpus = instance.cpus()
        self._stats_files = tuple((cpu, instance.cpu_stats_path(cpu)) for cpu in self._cpus)
        first.cpu_stats = FtraceStats.decode(self._cpu_stats()).cpu_stats
        self._open(instance, setup)
        instance.change("tracing_on", "1")
        if options.symbolize_ksyms:
            self._symbolize(setup.problems)  # The kernel records meanwhile.
        self._begin()

    def _report(self, problems: list[str], earlier: Iterable[str] = ()) -> None:
        """Tell the user and the trace what the session lacks."""
        if problems:
            self._first_stats.exclusive_feature_error = "; ".join([*earlier, *problems])
        for problem in problems:
            self.machine.tell(f"{self.name}: {problem}")

    def _symbolize(self, problems: list[str]) -> None:
        retain = self._options.ksyms_mem_policy == FtraceConfig.KSYMS_RETAIN
        self._names = KernelNames(self.machine, retain=retain)
        self._first_stats.kernel_symbols_parsed = self._names.count
        self._first_stats.kernel_symbols_mem_kb = self._names.memory_kb
        if not self._names.count:
            self._report([HIDDEN_NAMES], problems)

    def _buffer_kb(self) -> int:
        words = self.machine.read("proc/meminfo").split(None, 2)[1:2]
        large = bool(words) and words[0].isdigit() and int(words[0]) >= LARGE_MACHINE_KB
        asked, default = self._options.buffer_size_kb, BUFFER_KB[large]
        if self._options.buffer_size_lower_bound:
            return max(asked, default)
        return asked or default

    def _open(self, instance: Instance, setup: Setup) -> None:
        cpus = self._cpus
        size_kb = instance.read("buffer_subbuf_size_kb").strip()
        page = int(size_kb) * 1024 if size_kb.isdigit() else os.sysconf("SC_PAGE_SIZE")
        rows, rules = tuple(setup.table.rows), setup.print_rules
        try:
            self._reader = _native.FtraceReader(rows, page, max(cpus) + 1, rules)
            for cpu in cpus:
                self._pipes[cpu] = instance.open_pipe(cpu)
        except (OSError, ValueError) as error:
            raise TracefsError(f"can't read the ring buffers: {error}") from None
        self._all_pipes = tuple(self._pipes.items())
        self._batches_per_buffer = self._buffer_kb() // BATCH_KB + 1
        self._clock = ClockReader(instance, self.machine.now_ns)
        if self._options.preserve_ftrace_buffer:
            self._first_stats.preserve_ftrace_buffer = True
            self.write(TracePacket(ftrace_stats=self._first_stats))

    def _begin(self) -> None:
        asked = self._options.drain_period_ms
        is_asked = 1 <= asked <= MAX_DRAIN_PERIOD_MS
        waits = _can_wait_for_buffers()
        period = asked if is_asked else DRAIN_PERIOD_MS[waits]
        self._budget = Budget(len(self._cpus))
        # Encoded once: each flush writes it.
        self._first_packet = TracePacket(
            timestamp=self.machine.now_ns(), ftrace_stats=self._first_stats
        ).encode()
        self._poll = self.poll({"drain": period}, self._drain, self._budget)
        if waits and (not is_asked or self._options.drain_buffer_percent):
            self._watch()

    # --- recording

    def _drain(self, _due: Iterable[str]) -> None:
        self._read(self._all_pipes, MAX_BATCHES)

    def _watch(self) -> None:
        """Read each buffer as soon as it is as full as `buffer_percent` says."""
        for pipe in self._all_pipes:
            self.machine.runner.watch(pipe[1], partial(self._read_full, pipe))

    def _unwatch(self) -> None:
        self.machine.runner.cancel(self._watching_later)
        for _, fd in self._all_pipes:
            self.machine.runner.unwatch(fd)

    def _read_full(self, pipe: tuple[int, int]) -> None:
        cpu_ns = self.machine.cpu_ns()
        self.machine.observed(self.name, self._read, (pipe,), self._batches_per_buffer)
        used_ns = self.machine.cpu_ns() - cpu_ns
        wait_ns = self._budget.spend(self.machine.now_ns(), used_ns)
        if wait_ns:
            if self._watching_later is None:  # The first time.
                self.note(SLOW)
            self._unwatch()
            self._watching_later = self.machine.runner.post_delayed(self._watch, wait_ns / 1e6)

    def _read(self, pipes: tuple[tuple[int, int], ...], batches: int) -> None:
        names = self._names.interned if self._names is not None else None
        self._reader.drain(self.writer(), pipes, batches, self._clock.fields(), names)

    def _cpu_stats(self) -> bytes:
        return _native.ftrace_cpu_stats(self._stats_files)

    def _last_packet(self) -> bytes:
        # Encoded without message classes: after a pause these take a third of a millisecond.
        errors = (varint_field(PARSE_ERRORS, each) for each in self._reader.errors())
        stats = b"".join((END_OF_TRACE, self._cpu_stats(), *errors))
        return varint_field(TIMESTAMP, self.machine.now_ns()) + bytes_field(STATS, stats)


def _can_wait_for_buffers() -> bool:
    """Whether poll() waits until a buffer is filled so far: Linux 6.9 or later."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return found is not None and (int(found[1]), int(found[2])) >= (6, 9)
