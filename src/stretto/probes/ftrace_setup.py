"""Prepares a folder of tracefs for a session, as its FtraceConfig asks.

    clock, size of the buffers       unless their contents are preserved
    tids, CPUs, options of ftrace
    probes of functions
    events and their filters
    the tracer function_graph

What the kernel refuses is left out, and its reason kept for the trace and the terminal.
"""

from __future__ import annotations

import re

from stretto.probes import ftrace_clock, ftrace_kprobes, ftrace_syscalls, function_graph
from stretto.probes.ftrace_events import EventTable, Format
from stretto.probes.ftrace_kprobes import Kprobes
from stretto.probes.ftrace_selection import (
    ALWAYS_ON,
    PRINT,
    RSS_STAT,
    THROTTLED_RSS_STAT,
    Selection,
)
from stretto.probes.tracefs import TracefsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.tracefs import Instance, Tracefs
    from stretto.protos.config import FtraceConfig

    Rule = tuple[bytes | None, bytes, bool]
    """A rule of the print filter, as `_native.FtraceReader` takes it."""

NO_EFFECT = ("debug_ftrace_abi", "atrace_apps", "atrace_categories_prefer_sdk")
"""Options that only Android has."""
COPY_MARKS = "options/copy_trace_marker"
THROTTLE = (
    "hist:keys=mm_id,member:bucket=size/0x80000"
    ":onchange($bucket).rss_stat_throttled(mm_id,curr,member,size)"
)
PAGE_KB = 16
"""The size of the buffers' pages, if there are MANY_PAGES: large ones are read with fewer calls.

Linux before 6.8, and the top folder, keep their pages of 4 KiB.
"""
MANY_PAGES = 64
DRAIN_PERCENT = 50
"""How full a buffer is when it is read at once, unless the config says it."""
_OPTION = re.compile(r"[A-Za-z0-9_-]+")


def open_folder(tracefs: Tracefs, options: FtraceConfig) -> Instance:
    """Return the folder in which a session records.

    That is a private instance, or the one that the config names. The top folder is used for what
    only it has: a buffer that was filled before the session, and some restrictions of functions.

    Raises:
        TracefsError: It can't be used.
    """
    if options.instance_name:
        return tracefs.instance(options.instance_name)
    if options.preserve_ftrace_buffer:
        return tracefs.top(shared=True)
    if function_graph.needs_top_folder(options, tracefs):
        return tracefs.top(shared=False)
    instance = tracefs.make_instance()
    if (
        options.enable_function_graph
        and function_graph.is_known(tracefs)
        and not function_graph.is_known(instance)
    ):
        instance.close()
        return tracefs.top(shared=False)
    return instance


class Setup:
    """Prepares a folder; recording is then still off.

    Args:
        tracefs: The top folder.
        instance: The folder in which the session records.
        options: The config.
        buffer_kb: The size of each CPU's buffer.

    Raises:
        TracefsError: The session can't record.
    """

    def __init__(
        self, tracefs: Tracefs, instance: Instance, options: FtraceConfig, buffer_kb: int
    ) -> None:
        self._tracefs = tracefs
        self._instance = instance
        self._options = options
        self.problems = [f"{name} has no effect here" for name in NO_EFFECT if options.has(name)]
        """What the session lacks, and why."""
        self.failed: list[str] = []
        """Events that the kernel refuses."""
        selection = Selection(instance, options)
        self.unknown = selection.unknown
        self.print_rules = tuple(_rules(options))
        self.kprobes = Kprobes(tracefs)
        if not options.preserve_ftrace_buffer:
            self._clear(buffer_kb)
        self._restrict()
        self._enable(selection.names)
        if options.enable_function_graph:
            self._problem("enable_function_graph", function_graph.switch_on(instance, options))
        percent = min(options.drain_buffer_percent or DRAIN_PERCENT, 100)
        if not instance.change("buffer_percent", str(percent)) and options.drain_buffer_percent:
            self._problem("drain_buffer_percent", "the kernel has no buffer_percent")

    def _problem(self, option: str, reason: str | None) -> None:
        if reason is not None:
            self.problems.append(f"{option}: {reason}")

    def _clear(self, buffer_kb: int) -> None:
        instance = self._instance
        if (tracer := instance.read("current_tracer").strip()) not in ("", "nop"):
            raise TracefsError(f"ftrace is in use by the tracer {tracer!r}")
        instance.change("tracing_on", "0")
        instance.write("trace", "")
        ftrace_clock.choose(instance, raw=bool(self._options.use_monotonic_raw_clock))
        if instance.private and buffer_kb >= MANY_PAGES * PAGE_KB:
            instance.write("buffer_subbuf_size_kb", str(PAGE_KB))
        instance.change("buffer_size_kb", str(buffer_kb))

    def _restrict(self) -> None:
        """Write the options that restrict the events."""
        options = self._options
        for option in options.tracefs_options:
            if option.state:
                known = _OPTION.fullmatch(option.name)
                name = f"options/{option.name}"
                if not known or not self._instance.change(name, "01"[option.state == 1]):
                    self._problem("tracefs_options", f"the kernel has no option {option.name!r}")
        if options.tids_to_trace:
            text = " ".join(map(str, options.tids_to_trace))
            if not self._instance.change("set_event_pid", text):
                self._problem("tids_to_trace", "the kernel refuses them")
        mask = options.tracing_cpumask
        if mask and not self._instance.change("tracing_cpumask", mask):
            self._problem("tracing_cpumask", "the kernel refuses it")

    # --- events

    def _enable(self, names: list[str]) -> None:
        options = self._options
        compact = options.compact_sched is None or options.compact_sched.enabled is not False
        # Without sched_switch, events sched_waking are plain events, not columns of CompactSched.
        self.table = EventTable(
            compact=compact and "sched/sched_switch" in names,
            generic=not options.disable_generic_events,
            dense=options.denser_generic_event_encoding
            or not options.has("denser_generic_event_encoding"),
            filtered=bool(self.print_rules),
        )
        if options.syscall_events:
            names = self._filter_calls(names)
        for name in names:
            if not self._add(name) or not self._switch_on(name):
                self.failed.append(name)
        if PRINT in names:
            self._copy_marks()
        self._add_probes()

    def _add(self, name: str) -> bool:
        """Add an event to the table; return False if it isn't written."""
        try:
            return self.table.add(self._format(name))
        except ValueError:
            return False

    def _format(self, name: str) -> Format:
        file = f"events/{name}/format"
        return Format(name, self._instance.read(file) or self._tracefs.read(file))

    def _switch_on(self, name: str) -> bool:
        if name == THROTTLED_RSS_STAT and not self._instance.append(
            f"events/{RSS_STAT}/trigger", THROTTLE
        ):
            return False
        group = name.split("/")[0]
        return group == ALWAYS_ON or self._instance.change(f"events/{name}/enable", "1")

    def _filter_calls(self, names: list[str]) -> list[str]:
        """Let the kernel record some system calls only; return the events that remain."""
        calls, unknown = ftrace_syscalls.numbers(self._options.syscall_events)
        self.unknown += [f"syscall_events: {name}" for name in unknown]
        text = ftrace_syscalls.event_filter(calls)
        refused = [
            name
            for name in ftrace_syscalls.EVENTS
            if not calls or not self._instance.change(f"events/{name}/filter", text)
        ]
        if calls and refused:
            self._problem("syscall_events", "the kernel refuses the filter")
        return [name for name in names if name not in refused]

    def _copy_marks(self) -> None:
        """Let what programs write to the top folder's trace_marker be recorded here too."""
        if self._instance.path == self._tracefs.path or self._options.instance_name:
            return
        if not self._instance.change(COPY_MARKS, "1"):
            self._problem(PRINT, "Linux before 6.16 copies no texts of trace_marker to instances")

    def _add_probes(self) -> None:
        probes = list(ftrace_kprobes.wanted(self._options))
        if probes and not self._tracefs.has(ftrace_kprobes.FILE):
            self._problem("kprobe_events", "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)")
        for probe in probes:
            name = self.kprobes.define(probe)
            if name is None:
                kind = "kretprobes" if probe.returns else "kprobes"
                self.failed.append(f"{kind}/{probe.function}")
                continue
            self.table.add_constant(self._format(name), "kprobe_event", probe.message)
            if not self._switch_on(name):
                self.failed.append(name)


def _rules(options: FtraceConfig) -> list[Rule]:
    found: list[Rule] = []
    for rule in options.print_filter.rules if options.print_filter else ():
        allow = bool(rule.allow)
        if rule.atrace_msg is not None:
            message = rule.atrace_msg
            found.append((message.type.encode(), message.prefix.encode(), allow))
        else:
            found.append((None, rule.prefix.encode(), allow))
    return found
