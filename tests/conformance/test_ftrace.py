"""`linux.ftrace` beside Perfetto's `traced_probes` v56: the same kernel at the same time.

Both producers take part in one session: ours uses a private tracefs instance, theirs the top one.
So the buffers of both have the same events. Each instance reads the clock for itself, and an
interrupt may come between the two records of an event. So only events of the same kind, thread and
CPU have the same order in both.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import CLOCK_BOOTTIME, clock_gettime_ns
from typing import Any, NamedTuple

import pytest

from stretto.probes.tracefs import Tracefs
from stretto.protos.config import FtraceConfig
from stretto.protos.trace import FtraceEventBundle, FtraceStats, TracePacket
from stretto.protozero.wire import DELIMITED, read_field, read_fields
from tests.conformance.both_probes import record
from tests.support.polling import wait_until
from tests.support.tracefs_instances import left_behind

# Perfetto's producer resets the top instance of tracefs when it starts, so only one runs at a time.
pytestmark = [pytest.mark.thorough, pytest.mark.once, pytest.mark.xdist_group("tracefs")]

EVENTS = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "sched/sched_process_free",
    "task/task_newtask",
    "task/task_rename",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq/softirq_raise",
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
    "signal/signal_generate",
    "power/cpu_idle",
    "power/cpu_frequency",
    "tlb/tlb_flush",
]
WORK = """
import os, subprocess
for _ in range(30_000): os.getppid()
for _ in range(20): subprocess.run(["true"])
"""
DEAD, ZOMBIE = 0x10, 0x20
NEAR_NS = 1_000_000
MEDIAN_NS = 50_000

Group = tuple[int, object, object]
"""CPU, kind and thread of events."""
Events = dict[Group, list[tuple[int, object]]]
"""For each group of events: the time of each event, and all its other contents."""


class Recorded(NamedTuple):
    events: Events
    damaged: int
    stats: list[FtraceStats]


class Session(NamedTuple):
    mine: Recorded
    theirs: Recorded
    without_theirs: bytes
    window: tuple[int, int]
    """The time of the work, in which both producers record all events."""


def both_are_enabled() -> bool:
    """Whether the top instance of tracefs and one of ours have all events.

    A producer enables one event after the other, which may take long on a busy machine.
    """
    top = Tracefs("/")
    wanted = {event.replace("/", ":") for event in EVENTS} & {*top.read("available_events").split()}
    own = [name for name in top.names("instances") if name.startswith("stretto-")]
    enabled = [
        wanted <= {*top.read(f"{folder}set_event").split()}
        and top.read(f"{folder}tracing_on").strip() == "1"
        for folder in ("", *(f"instances/{name}/" for name in own))
    ]
    return enabled[0] and any(enabled[1:])


class Work:
    """The recorded work, and its time."""

    def __call__(self) -> None:
        wait_until(both_are_enabled, "both producers to enable all events")
        self.start = clock_gettime_ns(CLOCK_BOOTTIME)
        subprocess.run([sys.executable, "-c", WORK], check=True)
        self.end = clock_gettime_ns(CLOCK_BOOTTIME)


def config(*, compact: bool) -> FtraceConfig:
    return FtraceConfig(
        ftrace_events=EVENTS,
        buffer_size_kb=16384,
        compact_sched=FtraceConfig.CompactSchedConfig(enabled=compact),
    )


@pytest.fixture(scope="module", params=["verbose", "compact"])
def session(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    work = Work()
    compact = request.param == "compact"
    both = record(tmp_path_factory.mktemp("s"), config(compact=compact), work)
    window = (work.start, work.end)
    return Session(recorded(both.mine), recorded(both.theirs), both.without_theirs, window)


def recorded(packets: list[TracePacket]) -> Recorded:
    events: Events = {}
    found = [p.ftrace_events for p in packets if p.ftrace_events is not None]
    for bundle in found:
        for kind in (plain, switches, wakings):
            for time, group, event in kind(bundle):
                events.setdefault((bundle.cpu, *group), []).append((time, event))
    stats = [p.ftrace_stats for p in packets if p.ftrace_stats is not None]
    return Recorded(events, sum(bool(b.lost_events or b.error) for b in found), stats)


Row = tuple[int, tuple[object, object], object]


def plain(bundle: FtraceEventBundle) -> Iterator[Row]:
    """Yield the events that are not in CompactSched.

    Each producer has its own numbers for generic events, so they are replaced by descriptions.
    """
    names = {
        row.field_id: described(row.event_descriptor) for row in bundle.generic_event_descriptors
    }
    for event in bundle.event:
        kind: object = next(name for name in reversed(vars(event)))
        value: object = getattr(event, str(kind), None)
        if event.sched_switch is not None:
            event.sched_switch.prev_state = state_of(event.sched_switch.prev_state)
        if event.unknown_fields:
            data = bytes(event.unknown_fields)
            number, _, start, end = read_field(data, 0, len(data))
            kind, value = names[number], data[start:end]
        yield event.timestamp, (kind, event.pid), value


def state_of(recorded: int) -> int:
    """Return the state of the thread that leaves the CPU.

    A process that ends is a zombie until its parent has waited for it, and dead from then on. That
    may happen between the records of the two instances.
    """
    return ZOMBIE if recorded == DEAD else recorded


def described(descriptor: bytes) -> tuple[object, ...]:
    """Return the name of an event, and the names, numbers and types of its fields."""
    name, *fields = ((n, descriptor[value:end]) for n, _, value, _, end in read_fields(descriptor))
    rows = [
        {n: field[v:end] if wire == DELIMITED else v for n, wire, v, _, end in read_fields(field)}
        for _, field in fields
    ]
    return name, *((row[1], row[3], row[5]) for row in rows)


def switches(bundle: FtraceEventBundle) -> Iterator[Row]:
    if (rows := bundle.compact_sched) is None:
        return
    time = 0
    for delta, state, pid, prio, comm in zip(
        rows.switch_timestamp,
        rows.switch_prev_state,
        rows.switch_next_pid,
        rows.switch_next_prio,
        rows.switch_next_comm_index,
        strict=True,
    ):
        time += delta
        yield time, ("switch", 0), (state_of(state), pid, prio, rows.intern_table[comm])


def wakings(bundle: FtraceEventBundle) -> Iterator[Row]:
    if (rows := bundle.compact_sched) is None:
        return
    time = 0
    for delta, pid, cpu, prio, comm, flags in zip(
        rows.waking_timestamp,
        rows.waking_pid,
        rows.waking_target_cpu,
        rows.waking_prio,
        rows.waking_comm_index,
        rows.waking_common_flags,
        strict=True,
    ):
        time += delta
        yield time, ("waking", pid), (cpu, prio, rows.intern_table[comm], flags)


def test_both_producers_record_the_same_events_in_the_same_order(session: Session) -> None:
    start, end = session.window
    deltas = []
    for group, rows in session.mine.events.items():
        first = [row for row in rows if start <= row[0] <= end]
        near = (start - NEAR_NS, end + NEAR_NS)
        others = [r for r in session.theirs.events.get(group, ()) if near[0] <= r[0] <= near[1]]
        keys, wanted = [row[1] for row in others], [row[1] for row in first]
        shift = next(
            (i for i in range(len(keys) - len(wanted) + 1) if keys[i : i + len(wanted)] == wanted),
            None,
        )
        assert shift is not None, (group, wanted[-3:], keys[-3:])
        deltas += [abs(a[0] - b[0]) for a, b in zip(first, others[shift:], strict=False)]
    assert median(deltas) < MEDIAN_NS
    assert len(deltas) >= 50_000


def test_both_producers_record_the_same_number_of_events(session: Session) -> None:
    start, end = session.window
    mine, theirs = (
        sum(start <= row[0] <= end for rows in each.events.values() for row in rows)
        for each in (session.mine, session.theirs)
    )
    assert abs(mine - theirs) <= 10  # Events near the start and the end.


def test_no_event_is_lost_or_damaged(session: Session) -> None:
    assert session.mine.damaged == session.theirs.damaged == 0


def test_statistics_are_written_for_both_ends(session: Session) -> None:
    for stats in (session.mine.stats, session.theirs.stats):
        assert [each.phase for each in stats[:2]] == [1, 2]
        assert all(row.overrun == 0 for row in stats[1].cpu_stats)
    mine, theirs = ({row.cpu for row in s.stats[1].cpu_stats} for s in session[:2])
    assert mine == theirs


def test_trace_processor_reads_the_events_without_an_error(session: Session, oracle: Any) -> None:
    processor = oracle(session.without_theirs)
    # On some machines, the kernel records nothing for idle tasks.
    errors = [e for e in processor.errors() if "mismatched_sched_switch_tids" not in str(e)]
    assert errors == []
    ((count,),) = processor.query("select count(*) from sched")
    assert count > 100


def test_tracefs_is_left_without_our_instance(session: Session) -> None:
    assert session.mine.stats
    assert left_behind() == []
