"""Options of linux.ftrace beside Perfetto's `traced_probes` v56, on the same kernel at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stretto.probes.ftrace_syscalls import numbers
from stretto.probes.tracefs import Tracefs
from stretto.protos.config import FtraceConfig
from stretto.protos.trace import FtraceEvent, FtraceStats, TracePacket
from tests.conformance.both_probes import Both, record
from tests.support.polling import wait_until

# Perfetto's producer resets the top instance of tracefs when it starts, so only one runs at a time.
pytestmark = [pytest.mark.thorough, pytest.mark.once, pytest.mark.xdist_group("tracefs")]

WORK = "import os\nfor _ in range(2_000): os.getppid(); open('/dev/null').close()\n"
MARKS = ["B|12|hello\n", "E|12\n", "C|12|n|5\n", "free text\n", "B|12|keep\n", "X|a|keep\n"]
CATEGORIES = ["sched", "irq", "freq", "idle", "disk", "workq", "sync", "memory", "pagecache", "gfx"]
EDGE_NS = 5_000_000
Rule = FtraceConfig.PrintFilter.Rule
Kprobe = FtraceConfig.KprobeEvent


class Work:
    """Runs Python code in a process while both record."""

    def __init__(self, code: str = WORK) -> None:
        self._code = code
        self.pid = 0

    def __call__(self) -> None:
        with subprocess.Popen([sys.executable, "-c", self._code]) as process:
            self.pid = process.pid
        assert process.returncode == 0

    def events(self, packets: list[TracePacket], kind: str) -> list[FtraceEvent]:
        """Return the process's events of a kind, by their time."""
        found = [event for event in events(packets) if event.pid == self.pid and event.has(kind)]
        return sorted(found, key=lambda event: event.timestamp)


def events(packets: list[TracePacket]) -> list[FtraceEvent]:
    return [e for p in packets if p.ftrace_events is not None for e in p.ftrace_events.event]


def stats(packets: list[TracePacket]) -> FtraceStats:
    return next(p.ftrace_stats for p in packets if p.ftrace_stats is not None)


def test_system_calls_are_filtered_by_the_kernel(tmp_path: Path) -> None:
    names = ["sys_openat", "sys_getppid", "sys_none"]
    work = Work()
    both = record(tmp_path, FtraceConfig(syscall_events=names), work)
    calls = set(numbers(names)[0])
    sequences = []
    for packets in both[:2]:
        kinds = {e.sys_enter.id for e in events(packets) if e.sys_enter is not None}
        assert kinds == calls
        assert {e.sys_exit.id for e in events(packets) if e.sys_exit is not None} == calls
        found = [e.sys_enter for e in work.events(packets, "sys_enter") if e.sys_enter is not None]
        sequences.append([(enter.id, list(enter.args)) for enter in found])
    assert len(sequences[0]) >= 4_000
    assert sequences[0] == sequences[1]
    assert stats(both.mine).unknown_ftrace_events == ["syscall_events: sys_none"]


def write_marks() -> None:
    for mark in MARKS:
        with open(Path(Tracefs("/").path, "trace_marker"), "w") as file:
            file.write(mark)


def test_texts_of_programs_are_filtered(tmp_path: Path) -> None:
    rules = [
        Rule(atrace_msg=Rule.AtraceMessage(type="B", prefix="keep"), allow=True),
        Rule(prefix="B|", allow=False),
        Rule(prefix="free", allow=False),
    ]
    filter_ = FtraceConfig.PrintFilter(rules=rules)
    config = FtraceConfig(ftrace_events=["ftrace/print"], print_filter=filter_)
    both = record(tmp_path, config, write_marks)
    kept = [
        [e.print.buf for e in events(each) if e.print is not None and e.pid == os.getpid()]
        for each in both[:2]
    ]
    assert kept[0] == kept[1] == [MARKS[1], MARKS[2], MARKS[4], MARKS[5]]


def symbols(packets: list[TracePacket], start: int, end: int) -> set[bytes | None]:
    """Return the names of the functions that timers call in a time; None for one without a name."""
    known: dict[int, bytes] = {}
    found: set[bytes | None] = set()
    for packet in packets:
        if packet.sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            known.clear()
        if packet.interned_data is not None:
            rows = packet.interned_data.kernel_symbols
            known.update({row.iid or 0: bytes(row.str or b"") for row in rows})
        for event in packet.ftrace_events.event if packet.ftrace_events else ():
            timer = event.hrtimer_expire_entry
            if timer is not None and start <= event.timestamp <= end:
                found.add(known.get(timer.function))
    return found


def test_functions_of_the_kernel_have_the_same_names(tmp_path: Path, oracle: Any) -> None:
    config = FtraceConfig(ftrace_events=["timer/hrtimer_expire_entry"], symbolize_ksyms=True)
    both = record(tmp_path, config, Work())
    times = [[event.timestamp for event in events(packets)] for packets in both[:2]]
    start, end = max(map(min, times)), min(map(max, times))
    mine = symbols(both.mine, start + EDGE_NS, end - EDGE_NS)
    theirs = symbols(both.theirs, start, end)
    assert None not in mine
    assert mine <= theirs
    for packets in both.mine, both.theirs:
        assert stats(packets).kernel_symbols_parsed > 10_000
        assert stats(packets).kernel_symbols_mem_kb > 100
    processor = oracle(both.without_theirs)
    rows = processor.query(
        "select distinct display_value from ftrace_event join args using (arg_set_id) "
        "where name = 'hrtimer_expire_entry' and key = 'function'"
    )
    assert {name.encode() for (name,) in rows} == symbols(both.mine, 0, 1 << 63)


def test_addresses_are_written_as_numbers_without_symbols_too(tmp_path: Path) -> None:
    both = record(tmp_path, FtraceConfig(ftrace_events=["timer/hrtimer_expire_entry"]), Work())
    for packets in both[:2]:
        timers = [e.hrtimer_expire_entry for e in events(packets) if e.hrtimer_expire_entry]
        assert timers
        assert max(timer.function for timer in timers) < 1 << 20
        assert not any(packet.interned_data for packet in packets)


def test_raw_clock_is_paired_with_the_trace_clock(tmp_path: Path, oracle: Any) -> None:
    config = FtraceConfig(ftrace_events=["task/task_newtask"], use_monotonic_raw_clock=True)
    both = record(tmp_path, config, Work())
    distances = []
    for packets in both[:2]:
        bundles = [p.ftrace_events for p in packets if p.ftrace_events is not None]
        assert {bundle.ftrace_clock for bundle in bundles} == {4}
        distances.append(bundles[0].boot_timestamp - bundles[0].ftrace_timestamp)
    assert abs(distances[0] - distances[1]) < EDGE_NS
    assert oracle(both.without_theirs).errors() == []


def test_generic_events_of_the_old_form_are_the_same(tmp_path: Path) -> None:
    config = FtraceConfig(
        ftrace_events=["exceptions/page_fault_user"], denser_generic_event_encoding=False
    )
    work = Work()
    both = record(tmp_path, config, work)
    rows = []
    for packets in both[:2]:
        found = work.events(packets, "generic")
        rows.append([event.generic.encode() for event in found if event.generic is not None])
    assert len(rows[0]) > 500
    assert rows[0] == rows[1]


@pytest.mark.parametrize("category", CATEGORIES)
def test_categories_stand_for_the_same_events(tmp_path: Path, category: str) -> None:
    enabled: list[set[str]] = []

    def are_equal() -> bool:
        top = Tracefs("/")
        own = [name for name in top.names("instances") if name.startswith("stretto-")]
        folders = ["", *(f"instances/{name}/" for name in own)]
        enabled[:] = [set(top.read(f"{folder}set_event").split()) for folder in folders]
        return enabled[0] in enabled[1:]

    # On a busy machine a producer takes a moment to enable them.
    record(
        tmp_path,
        FtraceConfig(atrace_categories=[category]),
        lambda: wait_until(are_equal, "equal events"),
    )
    theirs, *mine = enabled
    assert theirs in mine


def test_full_buffers_are_read_before_the_period_ends(tmp_path: Path) -> None:
    config = FtraceConfig(
        ftrace_events=["raw_syscalls/sys_enter"],
        buffer_size_kb=512,
        drain_period_ms=60_000,
        drain_buffer_percent=20,
    )
    burst = "for _ in range(3_000): os.getppid()"  # a third of a buffer
    # sleep: a busy machine needs a moment to read it
    code = f"import os, time\nfor _ in range(20):\n {burst}\n time.sleep(0.02)\n"
    work = Work(code)
    both = record(tmp_path, config, work)
    found = len(work.events(both.mine, "sys_enter"))
    # A busy machine may lose some; without the limit only the last 20,000 or so would be there.
    lost = any(p.ftrace_events.lost_events for p in both.mine if p.ftrace_events)
    assert found >= 60_000 or (lost and found >= 30_000)


def refused(both: Both) -> str:
    return stats(both.mine).exclusive_feature_error


def test_what_the_kernel_lacks_is_told_and_the_rest_recorded(tmp_path: Path) -> None:
    tracefs = Tracefs("/")
    wanted = [Kprobe(probe="no_such_function", type=Kprobe.KPROBE_TYPE_BOTH)]
    config = FtraceConfig(
        ftrace_events=["task/task_newtask"],
        kprobe_events=wanted,
        enable_function_graph=True,
        function_filters=["no_such_function"],
    )
    both = record(tmp_path, config, Work())
    # v56 refuses such a session, and leaves its events enabled.
    tracefs.write("events/task/task_newtask/enable", "0")
    assert any(event.task_newtask for event in events(both.mine))
    failed = stats(both.mine).failed_ftrace_events
    assert failed == ["kprobes/no_such_function", "kretprobes/no_such_function"]
    assert "enable_function_graph" in refused(both)
    assert "linux.ftrace: enable_function_graph: " in both.printed
    if not tracefs.has("kprobe_events"):
        assert "kprobe_events: this kernel has no kprobes (CONFIG_KPROBE_EVENTS)" in both.printed
