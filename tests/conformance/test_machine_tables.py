"""Tables of traces with data of several machines equal those of the trace processor."""

from __future__ import annotations

import re

import pytest

from stretto.analysis import TraceProcessor
from tests.conformance.tables import compare
from tests.conformance.test_system_tables import COMPACT, SCHED, SYSTEM, encode, sys_stats
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once


def of_machine(machine: int, packets: str) -> str:
    """Add a machine to each packet."""
    return re.sub(r"(?m)^packet \{", f"packet {{ machine_id: {machine}", packets)


def track_events(base: int) -> str:
    """Return events whose uuids, flows, cookies and sequences are the same on each machine."""
    head = "packet { trusted_packet_sequence_id: 5 timestamp: "
    return f"""
packet {{ trusted_packet_sequence_id: 5 sequence_flags: 1 timestamp: {base}
  track_descriptor {{ uuid: 1 process {{ pid: 10 process_name: "p{base}" }} }} }}
packet {{ trusted_packet_sequence_id: 5 timestamp: {base}
  track_descriptor {{ uuid: 2 parent_uuid: 1 thread {{ pid: 10 tid: 11 }} }} }}
packet {{ trusted_packet_sequence_id: 5 timestamp: {base}
  track_descriptor {{ uuid: 3 parent_uuid: 1 counter {{ }} name: "c" }} }}
packet {{ trusted_packet_sequence_id: 5 timestamp: {base}
  track_descriptor {{ uuid: 4 name: "a" }} }}
{head}{base + 1} track_event {{ type: TYPE_SLICE_BEGIN track_uuid: 2 name: "s" flow_ids: 9 }} }}
{head}{base + 2} track_event {{ type: TYPE_COUNTER track_uuid: 3 counter_value: {base} }} }}
{head}{base + 3} track_event {{ type: TYPE_SLICE_BEGIN track_uuid: 4 name: "t" flow_ids: 9 }} }}
{head}{base + 4} track_event {{ type: TYPE_INSTANT track_uuid: 0 name: "i" }} }}
{head}{base + 5} track_event {{ type: TYPE_SLICE_END track_uuid: 2 }} }}
{head}{base + 6} track_event {{ type: TYPE_SLICE_END track_uuid: 4 }} }}
"""


def snapshot(*clocks: tuple[int, int]) -> str:
    return " ".join(f"clocks {{ clock_id: {clock} timestamp: {value} }}" for clock, value in clocks)


CLOCKS = (
    "packet { clock_snapshot { " + snapshot((6, 1000), (1, 50000)) + " } }\n"
    "packet { machine_id: 7 trusted_packet_sequence_id: 3 remote_clock_sync { "
    + "".join(
        f"synced_clocks {{ client_clocks {{ {snapshot((6, ts), (3, ts - 400))} }} "
        f"host_clocks {{ {snapshot((6, ts - 2990), (3, ts - 2000))} }} }} "
        for ts in (5000, 5100, 40_000_000_000, 40_000_000_301)
    )
    + "} }\n"
    + "".join(
        f"packet {{ machine_id: 7 trusted_packet_sequence_id: 4 sequence_flags: 1 timestamp: {ts} "
        f'timestamp_clock_id: {clock} track_event {{ type: TYPE_INSTANT name: "{ts}" }} }}\n'
        for ts, clock in ((5500, 6), (5500, 3), (5600, 0))
    )
    + "packet { machine_id: 7 clock_snapshot { "
    + snapshot((6, 6000), (1, 90000), (3, 5600))
    + " } }\n"
)

INTERLEAVED = (
    track_events(100)
    + of_machine(7, track_events(100))
    + of_machine(9, track_events(103))
    + of_machine(7, track_events(200))
    + track_events(203)
)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(INTERLEAVED, id="track events"),
        pytest.param(CLOCKS, id="clocks"),
        pytest.param(SCHED + of_machine(7, SYSTEM + SCHED), id="switches"),
        pytest.param(COMPACT + of_machine(7, COMPACT), id="compact switches"),
        pytest.param(
            sys_stats(10, 1)
            + of_machine(7, sys_stats(10, 3) + sys_stats(20, 2048))
            + sys_stats(20, 5),
            id="statistics",
        ),
    ],
)
def test_tables_of_several_machines_are_equal(source: str, oracle: type[Oracle]) -> None:
    different = [str(result) for result in compare(encode(source)) if not result.is_equal]
    assert not different, "\n".join(different)


@pytest.mark.parametrize("view", ["sched", "thread_state", "cpu", "cpu_available_frequencies"])
def test_views_have_the_cpu_numbers_of_each_machine(view: str, oracle: type[Oracle]) -> None:
    pytest.importorskip("duckdb")
    trace = encode(SYSTEM + SCHED + of_machine(7, SYSTEM + SCHED))
    judge = oracle(trace)
    with TraceProcessor(trace) as ours:
        query = f"select id, cpu, ucpu from {view} order by 1"
        assert ours.query(query).fetchall() == judge.query(query)
