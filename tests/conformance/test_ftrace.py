"""`linux.ftrace` beside Perfetto's `traced_probes` v56: the same kernel at the same time.

Both producers take part in one session: ours uses a private tracefs instance, theirs the top one.
So the buffers of both have the same events. Each instance reads the clock for itself, and an
interrupt may come between the two records of an event. So only events of the same kind, thread and
CPU have the same order in both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import pytest

from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import DataSourceConfig, FtraceConfig, TraceConfig
from stretto.protos.trace import FtraceEventBundle, FtraceStats, Trace, TracePacket
from stretto.protozero.wire import DELIMITED, read_field, read_fields
from tests.conformance.differential.services import ours
from tests.support import newer_debian
from tests.support.polling import wait_until
from tests.support.system_consumer import SystemConsumer
from tests.support.traced import Process, ProcessGroup, closing_all

pytestmark = [pytest.mark.thorough, pytest.mark.once]

NAME = "linux.ftrace"
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
EDGE_NS = 5_000_000
"""Events this close to the start or end are not compared: one producer may record alone then."""
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


def config(*, compact: bool) -> TraceConfig:
    ftrace = FtraceConfig(
        ftrace_events=EVENTS,
        buffer_size_kb=16384,
        compact_sched=FtraceConfig.CompactSchedConfig(enabled=compact),
    )
    source = DataSourceConfig(name=NAME, ftrace_config=ftrace)
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=262_144)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )


def offers_both(consumer: SystemConsumer) -> bool:
    names = [s.ds_descriptor.name for s in consumer.state().data_sources if s.ds_descriptor]
    return names.count(NAME) == 2


@pytest.fixture(scope="module", params=["verbose", "compact"])
def session(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    try:
        Tracefs("/")
    except TracefsError as error:
        pytest.skip(str(error))
    if (reason := newer_debian.missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("s")
    with ours(folder) as service, closing_all() as all_:
        names = ("PERFETTO_PRODUCER_SOCK_NAME", "PERFETTO_CONSUMER_SOCK_NAME")
        environment = {**os.environ, **dict(zip(names, service.sockets, strict=True))}
        native = newer_debian.command("traced_probes", folder)
        all_.append(ProcessGroup(*native, env=environment, stderr=subprocess.DEVNULL))
        command = [sys.executable, "-m", "stretto", "probes"]
        probes = Process(*command, env=environment, stderr=subprocess.DEVNULL)
        all_.append(probes)
        consumer = SystemConsumer(service.sockets[1])
        all_.append(consumer)
        wait_until(lambda: offers_both(consumer), "both producers")
        consumer.enable(config(compact=request.param == "compact"))
        consumer.process_events(300)
        subprocess.run([sys.executable, "-c", WORK], check=True)
        consumer.process_events(300)
        assert consumer.flush(60_000)
        consumer.stop()
        trace = Trace.decode(consumer.read())
    mine = [packet for packet in trace.packet if packet.trusted_pid == probes.pid]
    theirs = [p for p in trace.packet if p.trusted_pid != probes.pid and is_ftrace(p)]
    left_out = set(map(id, theirs))
    kept = Trace(packet=[packet for packet in trace.packet if id(packet) not in left_out])
    return Session(recorded(mine), recorded(theirs), kept.encode())


def is_ftrace(packet: TracePacket) -> bool:
    return packet.has("ftrace_events") or packet.has("ftrace_stats")


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
        if event.unknown_fields:
            data = bytes(event.unknown_fields)
            number, _, start, end = read_field(data, 0, len(data))
            kind, value = names[number], data[start:end]
        yield event.timestamp, (kind, event.pid), value


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
        yield time, ("switch", 0), (state, pid, prio, rows.intern_table[comm])


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


def window(session: Session) -> tuple[int, int]:
    """Return the time in which both producers record on all CPUs."""
    starts, ends = [], []
    for cpu in {group[0] for group in session.theirs.events}:
        for events in (session.mine.events, session.theirs.events):
            times = [row[0] for group, rows in events.items() if group[0] == cpu for row in rows]
            starts.append(min(times))
            ends.append(max(times))
    return max(starts) + EDGE_NS, min(ends) - EDGE_NS


def test_both_producers_record_the_same_events_in_the_same_order(session: Session) -> None:
    start, end = window(session)
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
        assert shift is not None, (group, len(wanted), len(keys))
        deltas += [abs(a[0] - b[0]) for a, b in zip(first, others[shift:], strict=False)]
    assert median(deltas) < MEDIAN_NS
    assert len(deltas) >= 50_000


def test_both_producers_record_the_same_number_of_events(session: Session) -> None:
    start, end = window(session)
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
    assert not [name for name in Tracefs("/").names("instances") if name.startswith("stretto-")]
