"""Rules of the importer, each with a trace in text form."""

from __future__ import annotations

from typing import Any

import pytest

from stretto.analysis.text_packets import parse_packets
from stretto.analysis.trace_tables import import_trace
from stretto.protos.trace import Trace


def table(text: str, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Import a trace in text form, and return columns of a table."""
    packets = list(parse_packets(text.splitlines(keepends=True), "text"))
    names, rows = import_trace(Trace(packet=packets).encode()).rows(name)
    places = [names.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in rows]


def test_sequence_id_may_be_zero_but_not_absent() -> None:
    text = """
        packet { timestamp: 1 trusted_packet_sequence_id: 0
                 track_event { type: TYPE_INSTANT track_uuid: 5 name: "zero" } }
        packet { timestamp: 2 track_event { type: TYPE_INSTANT track_uuid: 5 name: "absent" } }
    """
    assert table(text, "slice", "ts", "name") == [(1, "zero")]


def test_snapshot_gives_the_time_of_a_clock_that_went_backwards() -> None:
    snapshot = "packet { clock_snapshot { clocks { clock_id: 1 timestamp: %d } "
    snapshot += "clocks { clock_id: 6 timestamp: %d } } }\n"
    text = snapshot % (500, 10) + snapshot % (400, 20)
    rows = table(text, "clock_snapshot", "ts", "clock_id", "clock_value")
    assert rows == [(10, 1, 500), (10, 6, 10), (20, 1, 400), (20, 6, 20)]


def state(ts: int, tid: int, new_state: str, cpu: int = 0) -> str:
    """Return a packet with the new state of a thread, of a kernel other than Linux."""
    return (
        f"packet {{ timestamp: {ts} generic_kernel_task_state_event {{ cpu: {cpu} tid: {tid} "
        f'comm: "task{tid}" state: TASK_STATE_{new_state} prio: 20 }} }}\n'
    )


def test_state_of_a_thread_follows_the_switch_to_another() -> None:
    text = state(10, 1, "RUNNING") + state(20, 2, "RUNNING") + state(20, 1, "INTERRUPTIBLE_SLEEP")
    columns = "ts", "dur", "utid", "end_state"
    assert table(text, "__intrinsic_sched_slice", *columns) == [(10, 10, 1, "S"), (20, -1, 2, None)]
    columns = "ts", "dur", "utid", "state"
    assert table(text, "__intrinsic_thread_state", *columns) == [
        (10, 10, 1, "Running"),
        (20, -1, 1, "S"),
        (20, -1, 2, "Running"),
    ]


def test_state_in_an_impossible_order_is_counted_and_dropped() -> None:
    text = state(10, 1, "RUNNING") + state(20, 1, "RUNNING") + state(30, 1, "CREATED")
    assert len(table(text, "__intrinsic_thread_state", "ts")) == 1
    assert ("generic_task_state_invalid_order", 2) in table(text, "stats", "name", "value")


def test_state_with_an_invalid_cpu_is_counted_and_dropped() -> None:
    text = state(10, 1, "RUNNING", cpu=-1)
    assert table(text, "__intrinsic_sched_slice", "ts") == []
    assert ("task_state_invalid", 1) in table(text, "stats", "name", "value")


def test_process_tree_of_another_kernel_names_the_main_thread() -> None:
    text = """packet { timestamp: 1 generic_kernel_process_tree {
        processes { pid: 10 ppid: 1 cmdline: "program --flag" }
        threads { tid: 77 pid: 10 comm: "first" is_main_thread: true } } }"""
    rows = table(text, "process", "pid", "name", "cmdline", "parent_upid")
    assert (10, "program", "program --flag", 1) in rows
    assert (77, "first", 2, 1) in table(text, "thread", "tid", "name", "upid", "is_main_thread")


def legacy(ts: int, phase: str, more: str = "") -> str:
    """Return an event in the form of Chrome's old events."""
    name = f"event{ts}" if phase == "B" else "flow"
    return (
        f"packet {{ timestamp: {ts} trusted_packet_sequence_id: 1 track_event {{ track_uuid: 7 "
        f'categories: "cat" name: "{name}" legacy_event {{ phase: {ord(phase)} {more} }} }} }}\n'
    )


LEGACY_TRACK = """packet { timestamp: 0 trusted_packet_sequence_id: 1
    track_descriptor { uuid: 7 thread { pid: 1 tid: 2 } } }
"""


def test_mark_is_an_instant() -> None:
    assert table(LEGACY_TRACK + legacy(5, "R"), "slice", "ts", "dur") == [(5, 0)]


def test_flow_of_events_of_its_own_links_slices() -> None:
    text = LEGACY_TRACK + legacy(1, "B") + legacy(2, "s", "unscoped_id: 9")
    text += legacy(3, "B") + legacy(4, "t", "unscoped_id: 9")
    text += legacy(5, "f", "unscoped_id: 9") + legacy(6, "B")
    assert table(text, "flow", "slice_out", "slice_in") == [(0, 1), (1, 2)]
    assert table(LEGACY_TRACK + legacy(2, "s"), "flow", "id") == []


def test_frequency_of_an_invalid_cpu_adds_no_cpu() -> None:
    event = "generic_kernel_cpu_freq_event { cpu: -1 freq_hz: 5000 }"
    text = f"packet {{ timestamp: 1 {event} }}"
    assert table(text, "counter", "value") == [(5.0,)]
    assert table(text, "cpu", "id") == []


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(TypeError, match="a path, bytes or a binary file, not NoneType"):
        import_trace(None)  # type: ignore[arg-type]
