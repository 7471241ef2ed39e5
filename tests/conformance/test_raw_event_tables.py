"""The tables of raw events, with all fields as arguments, have the trace processor's rows."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto.analysis.trace_processor import TraceProcessor
from tests.conformance.tables import compare
from tests.conformance.test_heap_graph_tables import Value, message, packet
from tests.conformance.test_kernel_event_tables import Fields, events
from tests.conformance.test_legacy_event_tables import THREAD, legacy
from tests.conformance.test_system_tables import SCHED, bundle, event, switch, text, waking
from tests.conformance.test_tables import check, encode
from tests.support.oracle import Oracle
from tests.support.sources import ROOT

pytestmark = pytest.mark.once

HEADER = (ROOT / "native" / "analysis" / "kernel_event_fields.h").read_text()
KINDS = {
    int(number): (name, fields.split())
    for number, name, fields in re.findall(r'\[(\d+)\] = \{"(\w+)",\n"([^"]*)"\}', HEADER)
}
NEWER = {28, 30, 56, 59, 272, 354, 429, 430, 493, 494, 539, 540}
"""Events with fields that v52 doesn't have."""
OF_OTHER_TIMES = {
    kind
    for kind, (name, _) in KINDS.items()
    if name in ("gpu_work_period", "param_set_value_cpm", "thermal_exynos_acpm_bulk")
}
"""Events of Android whose time v52 takes from one of their fields."""
COMPARED = sorted(KINDS.keys() - NEWER - OF_OTHER_TIMES - {4})
"""A switch that is too early is no raw event."""


def value_of(letter: str, number: int) -> Value:
    """Return a value of a type; numbers are -1, 2^32 and others."""
    if letter == "s":
        return f"text {number}"
    return (-1, 1 << 32, 7, 0, (1 << 64) - 1)[number % 5] if letter != "a" else number


ONLY_RAW = packet(1, message((1, 9), (10, 1_000_000)))
"""The data of a CPU begin late, so that earlier events of all CPUs become raw events only."""


def all_fields(kind: int) -> Fields:
    fields = KINDS[kind][1]
    return tuple(
        (number, value_of(field[0], number))
        for number, field in enumerate(fields, 1)
        if field != "-"
    )


def descriptor(kind: int, name: str, *fields: tuple[int, str, int]) -> bytes:
    """Return a GenericEventDescriptor; a field is its number, name and type."""
    listed = [(2, message((1, key), (3, number), (5, type_))) for number, key, type_ in fields]
    return message((1, kind), (2, message((1, name), *listed)))


def described(*parts: bytes) -> bytes:
    """Return a packet with events of a generic kind, and their descriptors."""
    return packet(1, message((1, 0), *((11 if i else 2, part) for i, part in enumerate(parts))))


GENERIC = (
    events(
        (
            10,
            5,
            327,
            (
                (1, "own"),
                (2, message((1, "text"), (3, "a"))),
                (2, message((1, "int"), (4, -5))),
                (2, message((1, "uint"), (5, (1 << 64) - 1))),
                (2, message((1, "none"))),
                (2, message((1, "int"), (4, 6))),
            ),
        ),
        (11, 5, 591, ((1, 1),)),
        (12, 6, 600, ((1, 1),)),
        (13, 7, 65535, ((1, 1),)),
        (14, 8, 65999, ((1, 1),)),
        (15, 9, 5, ((1, 1),)),
    )
    + described(
        message((1, 20), (2, 5), (65536, message((1, -3), (2, "x"), (3, 4), (9, 1), (40, 1)))),
        descriptor(65536, "made", (1, "first", 3), (2, "second", 9), (3, "third", 13)),
        descriptor(65536, "ignored", (1, "other", 3)),
        descriptor(65537, "too wide", (32, "first", 3)),
        descriptor(65538, "no type", (1, "first", 19)),
        descriptor(65539, "message", (1, "first", 11), (2, "zigzag", 18), (3, "bytes", 12)),
    )
    + events(
        (21, 5, 65537, ((1, 1),)),
        (22, 5, 65538, ((1, 1),)),
        (23, 5, 65539, ((1, message()), (2, 5), (3, b"\x01"))),
        (24, 30, 65540, ()),
    )
)
SYMBOLS = encode(
    "packet { trusted_packet_sequence_id: 2 sequence_flags: 1 interned_data { "
    'kernel_symbols { iid: 7 str: "io_schedule" } } }\n'
    + bundle(
        0,
        event(10, 5, "sched_blocked_reason { pid: 10 caller: 7 io_wait: 1 }"),
        event(11, 5, "workqueue_execute_start { work: 1 function: 7 }"),
        event(12, 5, "hrtimer_expire_entry { hrtimer: 1 function: 7 now: 2 }"),
        event(13, 5, "sched_blocked_reason { pid: 10 caller: 8 }"),
        event(14, 5, "funcgraph_entry { depth: 0 func: 7 }"),
        event(15, 5, "funcgraph_exit { depth: 0 func: 7 }"),
        event(16, 5, "workqueue_queue_work { function: 7 }"),
    ).replace("sequence_flags: 1", "sequence_flags: 2")
)
COMPACT = """
packet { trusted_packet_sequence_id: 2 ftrace_events { cpu: 1 compact_sched {
  intern_table: "a" intern_table: "b" intern_table: ""
  switch_timestamp: [100, 10, 10, 10] switch_prev_state: [1, 0, 256, 4096]
  switch_next_pid: [10, 20, 0, 10] switch_next_prio: [120, 98, -1, 120]
  switch_next_comm_index: [0, 1, 2, 0]
  waking_timestamp: [90, 15, 10] waking_pid: [10, 20, 10] waking_target_cpu: [0, 1, 65535]
  waking_prio: [120, 98, 7] waking_comm_index: [0, 1, 0] waking_common_flags: [1, 16, 9] } } }
"""
EARLY = (
    bundle(0, switch(50, 1, 1, 2), switch(150, 1, 1, 2), text(60, 5, "B|5|x"), waking(61, 5, 7))
    + bundle(1, text(110, 5, "E"), "previous_bundle_end_timestamp: 100")
    + COMPACT.replace("[100", "[80")
)
MACHINES = SCHED + SCHED.replace("packet {", "packet { machine_id: 77 ")
LEGACY = THREAD + "".join(
    [
        legacy(10, "O", "object", "unscoped_id: 7 id_scope: 's'"),
        legacy(11, "N", "object", "global_id: 7"),
        legacy(12, "D", "object", "local_id: 8 duration_us: 5 use_async_tts: true"),
        legacy(13, "C", "n", event="debug_annotations { name: 'a' int_value: 1 }"),
        legacy(
            14, "M", "process_labels", event="debug_annotations { name: 'l' string_value: 't' }"
        ),
        legacy(
            15,
            "P",
            "sample",
            "thread_duration_us: 3 thread_instruction_delta: 4 id_scope: 'x'",
            "thread_time_absolute_us: 9 thread_instruction_count_absolute: 11",
        ),
        legacy(16, "V", "no thread", "pid_override: 30"),
        legacy(17, "v", "no thread", event="track_uuid: 5"),
    ]
)
BUNDLES = """
packet { trusted_packet_sequence_id: 2 timestamp: 5 chrome_events {
  metadata { name: "text" string_value: "a" } metadata { name: "int" int_value: -5 }
  metadata { name: "bool" bool_value: true } metadata { name: "json" json_value: "{}" }
  metadata { name: "none" }
  legacy_ftrace_output: "one " legacy_ftrace_output: "two"
  legacy_json_trace { type: USER_TRACE data: "[1]" }
  legacy_json_trace { type: SYSTEM_TRACE data: "[2]" } legacy_json_trace { data: "[3]" } } }
packet { trusted_packet_sequence_id: 2 timestamp: 6 chrome_events { metadata { name: "int"
  int_value: 1 } } }
"""


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(GENERIC, id="generic"),
        pytest.param(SYMBOLS, id="symbols"),
        pytest.param(encode(COMPACT), id="compact"),
        pytest.param(encode(EARLY), id="early"),
        pytest.param(encode(LEGACY), id="legacy"),
        pytest.param(encode(MACHINES), id="machines"),
        pytest.param(encode(BUNDLES), id="bundles"),
    ],
)
def test_raw_events_are_those_of_the_trace_processor(trace: bytes, oracle: type[Oracle]) -> None:
    check(trace)


def test_every_known_event_has_the_fields_of_the_trace_processor(oracle: type[Oracle]) -> None:
    trace = ONLY_RAW + events(*((10 + kind, 5, kind, all_fields(kind)) for kind in COMPARED))
    (found,) = (each for each in compare(trace) if each.table == "__intrinsic_ftrace_event")
    assert (found.equal, str(found)) == (
        len(COMPARED),
        f"{found.table:18} {len(COMPARED)} equal",
    )


NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.integers(0, 300)
"""Values of fields, at the limits and small ones."""


@st.composite
def random_event(draw: st.DrawFn) -> tuple[int, int, int, Fields]:
    kind = draw(st.sampled_from(COMPARED))
    known = [(i, field[0]) for i, field in enumerate(KINDS[kind][1], 1) if field[0] not in "-fd"]
    chosen = draw(st.lists(st.sampled_from(known), max_size=6)) if known else []
    values: list[tuple[int, Value]] = [
        (number, draw(st.text("ab\n", max_size=3)) if letter == "s" else draw(NUMBERS))
        for number, letter in chosen
    ]
    return draw(st.integers(0, 50)), draw(st.integers(0, 4)), kind, tuple(values)


@given(st.lists(random_event(), max_size=12))
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_random_events_have_the_arguments_of_the_trace_processor(
    oracle: type[Oracle], found: list[tuple[int, int, int, Fields]]
) -> None:
    results = compare(ONLY_RAW + events(*found))
    (raw,) = (each for each in results if each.table == "__intrinsic_ftrace_event")
    assert raw.is_equal, str(raw)


QUERIES = (
    "select * from ftrace_event",
    "select * from raw order by id desc",
    "select count(*), min(ts) from __intrinsic_ftrace_event",
    "select id, ts, name, utid from __intrinsic_chrome_raw",
    (
        "select e.id, key, display_value from ftrace_event e join args using (arg_set_id)"
        " order by 1, 2"
    ),
    "select extract_arg(arg_set_id, 'next_comm') from raw where name = 'sched_switch'",
    "select * from trace_bounds",
)


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_queries_of_raw_events_give_the_rows_of_the_trace_processor(
    engine: str, oracle: type[Oracle]
) -> None:
    trace = encode(SCHED + COMPACT + BUNDLES)
    judge = oracle(trace)
    with TraceProcessor(trace, engine=engine) as processor:
        for sql in QUERIES:
            names = processor.query(f"select * from ({sql})").columns
            keep = [i for i, name in enumerate(names) if name != "arg_set_id"]
            mine, its = (
                [tuple(row[i] for i in keep) for row in rows]
                for rows in (processor.query(sql).fetchall(), judge.query(sql))
            )
            assert mine == its, sql
