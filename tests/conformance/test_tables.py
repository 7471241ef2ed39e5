"""The importer's tables are equal to those of Perfetto's trace processor, row by row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from stretto.analysis import TraceProcessor
from tests.conformance.tables import Difference, compare
from tests.support.oracle import Oracle
from tests.support.recorded import record
from tests.support.sources import ROOT

text_format = pytest.importorskip("google.protobuf.text_format")
perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

pytestmark = pytest.mark.once

THREAD = """
packet { trusted_packet_sequence_id: 2 sequence_flags: 1
  track_descriptor { uuid: 7 thread { pid: 10 tid: 11 thread_name: "worker" } } }
"""


def event(ts: int, kind: str, more: str = "", *, track: int = 7, sequence: int = 2) -> str:
    """Return a packet with a track event."""
    return (
        f"packet {{ trusted_packet_sequence_id: {sequence} timestamp: {ts} "
        f"track_event {{ type: TYPE_{kind} track_uuid: {track} {more} }} }}\n"
    )


def begin(ts: int, name: str, more: str = "", *, track: int = 7) -> str:
    return event(ts, "SLICE_BEGIN", f'name: "{name}" categories: "c" {more}', track=track)


def end(ts: int, more: str = "", *, track: int = 7) -> str:
    return event(ts, "SLICE_END", more, track=track)


def track(uuid: int, fields: str, sequence: int = 2) -> str:
    """Return a packet with a TrackDescriptor."""
    return (
        f"packet {{ trusted_packet_sequence_id: {sequence} "
        f"track_descriptor {{ uuid: {uuid} {fields} }} }}\n"
    )


NESTED = THREAD + "".join(
    [
        begin(10, "outer"),
        begin(20, "inner"),
        end(30, 'name: "outer"'),
        begin(40, "next"),
        end(40),
        event(50, "INSTANT", 'name: "mark"'),
        event(50, "INSTANT", 'name: "mark in mark"'),
        begin(60, "open"),
        end(70, 'categories: "other"'),
    ]
)
MERGED = THREAD + "".join(
    [
        track(1, "process { pid: 10 process_name: 'app' process_labels: 'one' }"),
        *(track(uuid, 'parent_uuid: 1 name: "async"') for uuid in (2, 3, 4)),
        begin(10, "a", track=2),
        begin(20, "b", track=3),
        end(30, track=2),
        begin(35, "c", track=4),
        end(40, track=3),
        end(50, track=4),
        track(5, 'name: "alone" sibling_merge_behavior: SIBLING_MERGE_BEHAVIOR_NONE'),
        track(6, "parent_uuid: 5"),
        begin(60, "child", track=6),
        begin(70, "no descriptor", track=99),
        begin(80, "default", track=0),
        track(8, 'parent_uuid: 7 name: "lane" description: "of a thread"'),
        begin(90, "on lane", track=8),
    ]
)
COUNTERS = THREAD + "".join(
    [
        track(20, 'name: "queue" counter { unit: UNIT_COUNT unit_multiplier: 10 }'),
        track(21, 'name: "sum" parent_uuid: 7 counter { is_incremental: true unit_name: "x" }'),
        track(22, "parent_uuid: 7 counter { type: COUNTER_THREAD_TIME_NS }"),
        event(10, "COUNTER", "counter_value: 5", track=20),
        event(11, "COUNTER", "double_counter_value: 0.5", track=20),
        event(12, "COUNTER", "counter_value: 2", track=21),
        event(13, "COUNTER", "counter_value: 3", track=21),
        begin(20, "cpu", "extra_counter_track_uuids: 22 extra_counter_values: 1000"),
        end(30, "extra_counter_track_uuids: 22 extra_counter_values: 1400"),
        event(40, "COUNTER", "counter_value: 1", track=404),
        begin(50, "legacy", "thread_time_absolute_us: 3"),
        event(55, "INSTANT", "thread_time_absolute_us: 4"),
        end(60, "thread_time_absolute_us: 5"),
    ]
)
FLOWS = THREAD + "".join(
    [
        begin(10, "a", "flow_ids: 5"),
        end(20, "flow_ids: 9"),
        begin(30, "b", "flow_ids: 5 flow_ids: 6"),
        begin(35, "c", "terminating_flow_ids: 9 terminating_flow_ids: 77"),
        event(40, "INSTANT", 'name: "i" flow_ids: 18446744073709551615 terminating_flow_ids: 5'),
        begin(50, "d", "flow_ids: 18446744073709551615 flow_ids: 5"),
    ]
)
ARGS = THREAD + "".join(
    [
        begin(
            10,
            "a",
            'debug_annotations { name: "i.n[t]" int_value: -1 } '
            'debug_annotations { name: "u" uint_value: 18446744073709551615 } '
            'debug_annotations { name: "d" double_value: 1.5 } '
            'debug_annotations { name: "b" bool_value: true } '
            'debug_annotations { name: "p" pointer_value: 255 } '
            'debug_annotations { name: "s" string_value: "" } '
            'debug_annotations { name: "empty" } '
            'debug_annotations { name: "x" dict_entries { name: "k" int_value: 1 } '
            'dict_entries { name: "l" array_values { int_value: 1 } array_values { } '
            'array_values { string_value: "z" } } }',
        ),
        begin(
            15,
            "nested values",
            'debug_annotations { name: "old" nested_value { nested_type: DICT dict_keys: "i" '
            'dict_keys: "d" '
            'dict_keys: "b" dict_keys: "s" dict_keys: "l" dict_values { int_value: -5 } '
            "dict_values { double_value: 0.5 } dict_values { bool_value: true } "
            'dict_values { string_value: "t" } dict_values { nested_type: ARRAY '
            "array_values { int_value: 1 } "
            "array_values { int_value: 2 } } } }",
        ),
        end(16),
        end(20, 'debug_annotations { name: "u" int_value: 3 } correlation_id: 12'),
        begin(
            30,
            "b",
            'source_location { file_name: "f.py" function_name: "f" line_number: 3 }',
        ),
    ]
)
CLOCKS = THREAD + "".join(
    [
        (
            "packet { trusted_packet_sequence_id: 2 clock_snapshot { "
            "clocks { clock_id: 6 timestamp: 1000 } clocks { clock_id: 3 timestamp: 100 } "
            "clocks { clock_id: 64 timestamp: 5 unit_multiplier_ns: 10 is_incremental: true } } }\n"
        ),
        (
            "packet { trusted_packet_sequence_id: 3 clock_snapshot { "
            "clocks { clock_id: 3 timestamp: 200 } clocks { clock_id: 1 timestamp: 5000 } } }\n"
        ),
        *(
            f"packet {{ trusted_packet_sequence_id: 2 timestamp: {ts} timestamp_clock_id: {clock} "
            f'track_event {{ type: TYPE_INSTANT track_uuid: 7 name: "{clock}" }} }}\n'
            for ts, clock in ((3, 64), (4, 64), (50, 3), (150, 3), (5100, 1), (9, 77))
        ),
        (
            "packet { trusted_packet_sequence_id: 2 timestamp: 7 timestamp_clock_id: 200 "
            'track_event { type: TYPE_INSTANT track_uuid: 7 name: "later" } }\n'
        ),
        (
            "packet { clock_snapshot { clocks { clock_id: 6 timestamp: 3000 } "
            "clocks { clock_id: 3 timestamp: 2000 } clocks { clock_id: 200 timestamp: 5 } } }\n"
        ),
    ]
)
STATE = (
    event(5, "INSTANT", "name_iid: 1", sequence=4)
    + """
packet { trusted_packet_sequence_id: 4 sequence_flags: 1
  interned_data {
    event_names { iid: 1 name: "first" } event_names { iid: 1 name: "second" }
    event_categories { iid: 1 name: "x" } event_categories { iid: 2 name: "y" }
  }
  trace_packet_defaults { track_event_defaults { track_uuid: 30 } } }
packet { trusted_packet_sequence_id: 4 sequence_flags: 2 timestamp: 10
  track_event { type: TYPE_INSTANT name_iid: 1 category_iids: 1 category_iids: 2 } }
packet { trusted_packet_sequence_id: 4 sequence_flags: 2 timestamp: 20
  track_event { type: TYPE_INSTANT name_iid: 9 category_iids: 9 } }
packet { trusted_packet_sequence_id: 4 sequence_flags: 2 timestamp: 30 previous_packet_dropped: 1
  track_event { type: TYPE_INSTANT name: "lost" } }
"""
)
PROCESSES = THREAD + (
    "packet { timestamp: 5 process_tree { processes { pid: 20 ppid: 1 cmdline: '/bin/app -v' "
    "uid: 1000 process_start_from_boot: 3 } processes { pid: 30 ppid: 2 cmdline: "
    "'kworker/0:1-events' is_kthread: true } processes { pid: 40 ppid: 20 cmdline: 'a' "
    "cmdline: 'b' } processes { pid: 50 ppid: 1 } threads { tid: 21 tgid: 20 name: 'pool' } "
    "threads { tid: 11 tgid: 10 name: 'ignored' } } }\n"
    "packet { timestamp: 6 process_stats { processes { pid: 20 vm_rss_kb: 100 rss_anon_kb: 60 "
    "oom_score_adj: -5 runtime_user_mode: 77 smr_pss_kb: 9 } } }\n"
    + track(60, "thread { pid: 10 tid: 11 thread_name: 'reused' }")
    + begin(70, "on the new thread", track=60)
    + begin(75, "on the old thread", track=7)
    + track(61, "process { pid: 20 process_name: 'not used' start_timestamp_ns: 4 }")
    + track(62, "process { pid: 20 process_name: 'again' }")
)


FIRST = "".join(
    f"packet {{ trusted_packet_sequence_id: {sequence} timestamp: {sequence} sequence_flags: 1 "
    f"first_packet_on_sequence: {first} track_event {{ type: TYPE_INSTANT name: 'e' {track} }} }}\n"
    for sequence, first, track in (
        (3, "true", ""),
        (4, "false", "track_uuid: 1"),
        (5, "true", "track_uuid: 2"),
        (6, "true", "track_uuid: 1"),
    )
)
"""Tracks without descriptors: whether the sequence of their first event is complete."""
UNKNOWN = THREAD + event(10, "STATE") + event(20, "STATE", track=99) + event(30, "STATE", track=0)
LOGS = (
    """
packet { trusted_packet_sequence_id: 2 sequence_flags: 1 timestamp: 20
  interned_data {
    log_message_body { iid: 1 body: "ready" }
    source_locations { iid: 1 file_name: "a\\\\b.py" function_name: "f" line_number: 3 }
  } }
"""
    + track(7, 'thread { pid: 10 tid: 11 thread_name: "worker" }')
    + "".join(
        event(ts, "INSTANT", f'name: "log" {more}')
        for ts, more in (
            (30, "log_message { body_iid: 1 source_location_iid: 1 prio: PRIO_WARN }"),
            (40, "log_message { body_iid: 1 } source_location_iid: 1"),
            (50, "task_execution { posted_from_iid: 1 }"),
        )
    )
)


def encode(text: str) -> bytes:
    return bytes(text_format.Parse(text, perfetto.Trace()).SerializeToString())


def check(trace: bytes) -> None:
    different = [str(result) for result in compare(trace) if not result.is_equal]
    assert not different, "\n".join(different)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(NESTED, id="nested"),
        pytest.param(MERGED, id="merged"),
        pytest.param(COUNTERS, id="counters"),
        pytest.param(FLOWS, id="flows"),
        pytest.param(ARGS, id="args"),
        pytest.param(CLOCKS, id="clocks"),
        pytest.param(STATE, id="state"),
        pytest.param(PROCESSES, id="processes"),
        pytest.param(LOGS, id="logs"),
        pytest.param(FIRST, id="first packets"),
        pytest.param(UNKNOWN, id="events of unknown types"),
    ],
)
def test_tables_of_packets_written_by_hand_are_equal(text: str, oracle: type[Oracle]) -> None:
    check(encode(text))


@pytest.mark.parametrize("options", [["--full"], []], ids=["full", "auto"])
def test_tables_of_a_recording_are_equal(
    options: list[str], oracle: type[Oracle], tmp_path: Path
) -> None:
    run: Any = record(tmp_path / "t.pftrace", *options, str(ROOT / "examples" / "flow_demo.py"))
    if sys.version_info < (3, 12) and not options:
        # Samples know the ends of calls only roughly, so the END of another event may end a call.
        # It has no thread time, and the trace processor then shows an arbitrary `thread_dur`.
        found = [each._replace(columns=without_thread_dur(each)) for each in compare(run.trace)]
        assert [str(each) for each in found if not each.is_equal] == []
    else:
        check(run.trace)


def without_thread_dur(found: Difference) -> dict[str, int]:
    return {name: rows for name, rows in found.columns.items() if name != "thread_dur"}


VIEWS = (
    "slice",
    "slices",
    "track",
    "thread_track",
    "process_track",
    "counter_track",
    "thread_counter_track",
    "process_counter_track",
    "counter",
    "thread",
    "process",
    "flow",
    "clock_snapshot",
    "android_logs",
    "args",
)
QUERIES = (
    "select start_ts, end_ts from trace_bounds",
    "select ts, name, unit, value from counters",
    "select ts, track_id, name from instant order by ts",
    "select key, extract_arg(arg_set_id, key) from args where value_type = 'string' order by id",
    "select name, depth from ancestor_slice(1)",
    "select name, depth from descendant_slice(0)",
    (
        "select t.name, s.name, sum(dur) from slice s join thread_track tt on s.track_id = tt.id "
        "join thread t using (utid) group by 1, 2 order by 1, 2"
    ),
)


@pytest.mark.parametrize("text", [NESTED, MERGED, COUNTERS, FLOWS, ARGS, PROCESSES])
def test_sql_gives_the_rows_of_the_trace_processor(text: str, oracle: type[Oracle]) -> None:
    pytest.importorskip("duckdb")
    trace = encode(text)
    judge = oracle(trace)
    with TraceProcessor(trace) as ours:
        for view in VIEWS:
            columns = ours.query(f"select * from {view} limit 0").columns
            key = {"thread": "utid", "process": "upid"}.get(view, "id")
            wanted = [column for column in columns if not column.endswith("arg_set_id")]
            query = f"select {', '.join(wanted)} from {view} order by {key}"
            assert ours.query(query).fetchall() == judge.query(query), view
        for query in QUERIES:
            assert ours.query(query).fetchall() == judge.query(query), query
