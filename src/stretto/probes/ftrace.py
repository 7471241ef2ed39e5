"""`linux.ftrace`: events of the kernel, each session in a private instance of tracefs.

    start      instance, clock, buffers, events; then recording is switched on
    each tick  the pages of each CPU are read and converted natively
    flush      all pages, and FtraceStats of the start and of now
    stop       the instance is removed; if the user has named it, its state is restored

If the set-up fails, a FtraceStats packet gives the reason, and the session has no events.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.probes.ftrace_events import EventTable, Format
from stretto.probes.probe import Probe
from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import FtraceConfig
from stretto.protos.trace import FtraceCpuStats, FtraceEvent, FtraceStats, TracePacket
from stretto.protozero.wire import bytes_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import ClassVar

    from stretto.probes.poll import Poll
    from stretto.probes.tracefs import Instance

FTRACE_EVENTS = TracePacket.LAYOUT.by_name["ftrace_events"].number
DRAIN_PERIOD_MS = 100
MAX_DRAIN_PERIOD_MS = 60_000
MAX_BATCHES = 8
"""The most batches of pages that a tick reads for a CPU; the next tick reads the rest."""
LARGE_MACHINE_KB = 7 << 20
BUFFER_KB = {True: 8192, False: 2048}
"""The buffer of each CPU, by whether the machine has LARGE_MACHINE_KB of memory or more."""
CLOCKS = ("boot", "global", "local")
COUNTS = {
    "entries": "entries",
    "overrun": "overrun",
    "commit overrun": "commit_overrun",
    "bytes": "bytes_read",
    "dropped events": "dropped_events",
    "read events": "read_events",
}
TIMES = {"oldest event ts": "oldest_event_ts", "now ts": "now_ts"}
"""Fields of FtraceCpuStats by the kernel's names."""
PRINT = "ftrace/print"
ALWAYS_ON = {PRINT}
"""Events without a file `enable`."""
UNSUPPORTED = (
    "atrace_categories",
    "atrace_apps",
    "drain_buffer_percent",
    "print_filter",
    "symbolize_ksyms",
    "syscall_events",
    "enable_function_graph",
    "kprobe_events",
    "preserve_ftrace_buffer",
    "use_monotonic_raw_clock",
)


class Ftrace(Probe):
    """Records the events that a session's FtraceConfig names."""

    name = "linux.ftrace"
    tracefs: ClassVar[type[Tracefs]] = Tracefs

    def start(self) -> None:
        self._options = self.config.ftrace_config or FtraceConfig()
        self.instance: Instance | None = None
        self._pipes: dict[int, int] = {}
        self._poll: Poll | None = None
        self._first_stats = FtraceStats(phase=FtraceStats.START_OF_TRACE)
        try:
            tracefs = self.tracefs(self.machine.path(""))
            events = list(_patterns(self._options.ftrace_events))
            name = self._options.instance_name
            self.instance = tracefs.instance(name) if name else tracefs.make_instance()
            self._set_up(self.instance, tracefs, events)
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
            self.instance.write("tracing_on", "0")
            self.flush()
            self._poll = None
        for fd in self._pipes.values():
            os.close(fd)
        self._pipes.clear()
        self.instance.close()
        self.instance = None

    def flush(self) -> None:
        """Write all recorded events, and the statistics of the start and of now."""
        if self.instance is None or self._poll is None:
            return
        for cpu in self._pipes:
            self._read(cpu, self._batches_per_buffer)
        last = self._stats(self.instance, FtraceStats.END_OF_TRACE)
        last.ftrace_parse_errors = self._reader.errors()
        self.write(TracePacket(ftrace_stats=self._first_stats))
        self.write(TracePacket(ftrace_stats=last))

    # --- set-up

    def _set_up(self, instance: Instance, tracefs: Tracefs, events: list[str]) -> None:
        if (tracer := instance.read("current_tracer").strip()) not in ("", "nop"):
            raise TracefsError(f"ftrace is in use by the tracer {tracer!r}")
        options = self._options
        instance.change("tracing_on", "0")
        instance.write("trace", "")
        self._set_clock(instance)
        instance.change("buffer_size_kb", str(self._buffer_kb()))
        ignored = [name for name in UNSUPPORTED if options.has(name)]
        ignored += self._restrict(instance)
        if ignored:
            text = f"these options are not supported and are ignored: {', '.join(ignored)}"
            self._first_stats.exclusive_feature_error = text
        self._enable(instance, tracefs, events)
        first = self._stats(instance, FtraceStats.START_OF_TRACE)
        self._first_stats.cpu_stats = first.cpu_stats
        self._begin(instance)

    def _set_clock(self, instance: Instance) -> None:
        known = instance.read("trace_clock").replace("[", " ").replace("]", " ").split()
        clock = next((clock for clock in CLOCKS if clock in known), None)
        if clock != "boot":
            raise TracefsError("ftrace has no clock `boot` here: Linux 4.1 or later has it")
        instance.change("trace_clock", clock)

    def _buffer_kb(self) -> int:
        words = self.machine.read("proc/meminfo").split(None, 2)[1:2]
        large = bool(words) and words[0].isdigit() and int(words[0]) >= LARGE_MACHINE_KB
        asked, default = self._options.buffer_size_kb, BUFFER_KB[large]
        if self._options.buffer_size_lower_bound:
            return max(asked, default)
        return asked or default

    def _restrict(self, instance: Instance) -> list[str]:
        """Write the options that restrict the events; return those that the kernel refuses."""
        options = self._options
        wanted = {
            f"options/{o.name}": "1" if o.state == 1 else "0" for o in options.tracefs_options
        }
        if options.tids_to_trace:
            wanted["set_event_pid"] = " ".join(map(str, options.tids_to_trace))
        if options.tracing_cpumask:
            wanted["tracing_cpumask"] = options.tracing_cpumask
        return [name for name, text in wanted.items() if not instance.change(name, text)]

    def _enable(self, instance: Instance, tracefs: Tracefs, events: list[str]) -> None:
        options = self._options
        compact = options.compact_sched is None or options.compact_sched.enabled is not False
        names = dict.fromkeys(name for pattern in events for name in self._found(instance, pattern))
        # Without sched_switch, events sched_waking are plain events, not columns of CompactSched.
        self._table = EventTable(
            compact=compact and "sched/sched_switch" in names,
            generic=not options.disable_generic_events,
        )
        for name in names:
            text = instance.read(f"events/{name}/format") or tracefs.read(f"events/{name}/format")
            try:
                added = self._table.add(Format(name, text))
            except ValueError:
                added = False
            if not added or not (
                name in ALWAYS_ON or instance.change(f"events/{name}/enable", "1")
            ):
                self._first_stats.failed_ftrace_events.append(name)

    def _found(self, instance: Instance, pattern: str) -> list[str]:
        """Return the events that match a pattern, as `group/name`."""
        group, slash, name = pattern.rpartition("/")
        groups = [group] if slash else instance.names("events")
        if name == "*" and slash:
            found = [f"{group}/{event}" for event in instance.names(f"events/{group}")]
        elif pattern in (PRINT, "print"):
            found = [PRINT]
        elif slash or name in FtraceEvent.LAYOUT.by_name:
            paths = [f"{each}/{name}" for each in groups]
            found = [path for path in paths if instance.read(f"events/{path}/format")]
        else:
            found = []
        if not found:
            self._first_stats.unknown_ftrace_events.append(pattern)
        return found

    def _begin(self, instance: Instance) -> None:
        cpus = instance.cpus()
        size_kb = instance.read("buffer_subbuf_size_kb").strip()
        page = int(size_kb) * 1024 if size_kb.isdigit() else os.sysconf("SC_PAGE_SIZE")
        try:
            self._reader = _native.FtraceReader(tuple(self._table.rows), page, max(cpus) + 1)
            for cpu in cpus:
                self._pipes[cpu] = instance.open_pipe(cpu)
        except (OSError, ValueError) as error:
            raise TracefsError(f"can't read the ring buffers: {error}") from None
        self._batches_per_buffer = max(1, self._buffer_kb() * 1024 // page // 32) + 1
        instance.change("tracing_on", "1")
        period = self._options.drain_period_ms
        period = period if 1 <= period <= MAX_DRAIN_PERIOD_MS else DRAIN_PERIOD_MS
        self._poll = self.poll({"drain": period}, self._drain)

    # --- recording

    def _drain(self, _due: Iterable[str]) -> None:
        for cpu in self._pipes:
            self._read(cpu, MAX_BATCHES)

    def _read(self, cpu: int, batches: int) -> None:
        for _ in range(batches):
            bundles, more = self._reader.read(self._pipes[cpu], cpu)
            for bundle in bundles:
                self.write(bytes_field(FTRACE_EVENTS, bundle))
            if not more:
                return

    def _stats(self, instance: Instance, phase: int) -> FtraceStats:
        stats = FtraceStats(phase=phase)
        for cpu in instance.cpus():
            found = instance.cpu_stats(cpu)
            row = FtraceCpuStats(cpu=cpu)
            for name, field in COUNTS.items():
                setattr(row, field, int(found.get(name, 0)))
            for name, field in TIMES.items():
                setattr(row, field, found.get(name, 0.0))
            stats.cpu_stats.append(row)
        return stats


def _patterns(events: Iterable[str]) -> Iterator[str]:
    """Yield the patterns of a config: `group/name`, `name`, or `group/*`.

    Raises:
        TracefsError: A pattern has another form.
    """
    for event in events:
        group, slash, name = event.partition("/")
        parts = (group, name) if slash else (group,)
        plain = all(part and part.isascii() and part.isprintable() for part in parts)
        if (
            not plain
            or "/" in name
            or "*" in group
            or ("*" in name and name != "*")
            or ".." in event
        ):
            raise TracefsError(f"ftrace_events: {event!r} is not `group/name`, `name` or `group/*`")
        yield event
