"""Events with a phase instead of a type, as older versions of Chromium write them, give the tables
of Perfetto's trace processor: slices known by an id, instants of a process, flows, names.
"""

from __future__ import annotations

import pytest

from tests.conformance.test_tables import check, encode, track
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once

THREAD = """
packet { trusted_packet_sequence_id: 2 incremental_state_cleared: true timestamp: 1
  thread_descriptor { pid: 10 tid: 11 thread_name: "worker" } }
"""


def legacy(ts: int, phase: str, name: str = "n", more: str = "", event: str = "") -> str:
    """Return a packet with an event of a phase; `more` are fields of its legacy_event."""
    return (
        f"packet {{ trusted_packet_sequence_id: 2 timestamp: {ts} track_event {{ "
        f'name: "{name}" categories: "c" {event} '
        f"legacy_event {{ phase: {ord(phase)} {more} }} }} }}\n"
    )


ASYNC = THREAD + "".join(
    [
        legacy(10, "b", "load", "unscoped_id: 7", "debug_annotations { name: 'a' int_value: 1 }"),
        legacy(11, "b", "other", "global_id: 8"),
        legacy(12, "n", "mark", "unscoped_id: 7"),
        legacy(13, "e", "other", "global_id: 8"),
        legacy(14, "b", "local", "local_id: 7"),
        legacy(15, "e", "local", "local_id: 7"),
        legacy(16, "b", "scoped", 'unscoped_id: 9 id_scope: "s"'),
        legacy(17, "e", "scoped", 'unscoped_id: 9 id_scope: "s"'),
        legacy(18, "b", "no id"),
        legacy(19, "S", "step", "unscoped_id: 3", "thread_time_absolute_us: 5"),
        legacy(20, "S", "step", "unscoped_id: 4"),
        legacy(21, "T", "step", "unscoped_id: 3"),
        legacy(22, "p", "step", "unscoped_id: 4"),
        legacy(23, "F", "step", "unscoped_id: 3", "debug_annotations { name: 'b' int_value: 2 }"),
        legacy(24, "F", "step", "unscoped_id: 4"),
        legacy(25, "e", "load", "unscoped_id: 7"),
    ]
)
INSTANTS = THREAD + "".join(
    [
        legacy(10, "I", "thread", "instant_event_scope: SCOPE_THREAD"),
        legacy(11, "i", "process", "instant_event_scope: SCOPE_PROCESS"),
        legacy(12, "i", "global", "instant_event_scope: SCOPE_GLOBAL", "track_uuid: 0"),
        track(5, "process { pid: 10 }"),
        legacy(13, "i", "of a track", "instant_event_scope: SCOPE_PROCESS", "track_uuid: 5"),
        legacy(14, "i", "no thread", event="track_uuid: 5"),
        legacy(15, "B", "no thread", event="track_uuid: 5"),
        legacy(16, "R", "mark", event="track_uuid: 5"),
        legacy(17, "i", "of another process", "pid_override: 30"),
        legacy(18, "i", "of another thread", "pid_override: 30 tid_override: 31"),
        legacy(19, "i", "of a sibling", "tid_override: 12"),
        legacy(20, "i", "of none", "pid_override: 0"),
    ]
)
FLOWS = THREAD + "".join(
    [
        legacy(10, "X", "out", "duration_us: 1 bind_id: 5 flow_direction: FLOW_OUT"),
        legacy(2000, "X", "step", "duration_us: 1 bind_id: 5 flow_direction: FLOW_INOUT"),
        legacy(4000, "X", "in", "duration_us: 1 bind_id: 5 flow_direction: FLOW_IN"),
        legacy(6000, "X", "in again", "duration_us: 1 bind_id: 5 flow_direction: FLOW_IN"),
        legacy(8000, "X", "out again", "duration_us: 1 bind_id: 5 flow_direction: FLOW_OUT"),
        legacy(9500, "X", "lost", "duration_us: 1 bind_id: 6 flow_direction: FLOW_INOUT"),
        legacy(11000, "X", "unclear", "duration_us: 1 bind_id: 5"),
        legacy(12500, "X", "zero", "duration_us: 1 bind_id: 0 flow_direction: FLOW_OUT"),
    ]
)
NAMES = THREAD + "".join(
    [
        legacy(10, "M", "thread_name", event="debug_annotations { name: 'n' string_value: 'T' } "
        "debug_annotations { name: 'n' string_value: 'second' }"),
        legacy(11, "M", "process_name", event="debug_annotations { name: 'n' string_value: 'P' }"),
        legacy(12, "M", "process_name", event="debug_annotations { name: 'n' string_value: 'Q' }"),
        legacy(13, "M", "thread_name"),
        legacy(14, "M", "thread_name", event="debug_annotations { name: 'n' int_value: 1 }"),
    ]
)  # fmt: skip
NO_STATE = """
packet { trusted_packet_sequence_id: 2 timestamp: 1 thread_descriptor { pid: 10 tid: 11 } }
packet { trusted_packet_sequence_id: 2 timestamp: 2
  track_descriptor { uuid: 7 thread { pid: 10 tid: 11 } } }
""" + legacy(10, "b", "no thread", "unscoped_id: 7")
RENAMED = "".join(
    [
        track(5, 'name: "first"'),
        track(5, 'name: "second"'),
        track(6, 'name: "first" sibling_merge_behavior: SIBLING_MERGE_BEHAVIOR_NONE'),
        track(6, 'name: "second" sibling_merge_behavior: SIBLING_MERGE_BEHAVIOR_NONE'),
        legacy(10, "R", event="track_uuid: 5"),
        legacy(11, "R", event="track_uuid: 6"),
        track(5, 'name: "third"'),
        track(6, 'name: "third" sibling_merge_behavior: SIBLING_MERGE_BEHAVIOR_NONE'),
    ]
)
TRACES = {
    "async": ASYNC,
    "instants": INSTANTS,
    "flows": FLOWS,
    "names": NAMES,
    "no state": NO_STATE,
    "renamed": RENAMED,
}


@pytest.mark.parametrize("text", TRACES.values(), ids=TRACES)
def test_tables_of_legacy_events_are_equal(text: str, oracle: type[Oracle]) -> None:
    check(encode(text))
