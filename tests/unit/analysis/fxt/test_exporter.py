"""Conversion of Perfetto packets to FXT records."""

from __future__ import annotations

from typing import Any

import pytest

import stretto
from stretto.analysis.fxt import exporter
from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.records import (
    Argument,
    Event,
    KernelObject,
    ProviderEvent,
    ProviderInfo,
    Thread,
)
from stretto.protos.trace import (
    CounterDescriptor,
    DebugAnnotation,
    EventCategory,
    EventName,
    FtraceEventBundle,
    InternedData,
    InternedString,
    ProcessDescriptor,
    ThreadDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from stretto.protozero.wire import bytes_field
from tests.support.fxt_traces import exported, records_of
from tests.support.recorded_events import BEGIN, COUNTER, END, INSTANT, record

category = stretto.Category("test.fxt")

PROCESS, THREAD, TRACK, COUNTER_TRACK, ALONE = 1, 2, 3, 4, 5
HERE = Thread(10, 11)


def file_of(*packets: TracePacket) -> bytes:
    return b"".join(bytes_field(1, packet.encode()) for packet in packets)


def track(uuid: int, parent: int = 0, **fields: Any) -> TracePacket:
    return TracePacket(track_descriptor=TrackDescriptor(uuid=uuid, parent_uuid=parent, **fields))


TRACKS = [
    track(PROCESS, process=ProcessDescriptor(pid=10, process_name="shell")),
    track(THREAD, PROCESS, thread=ThreadDescriptor(pid=10, tid=11, thread_name="main")),
    track(TRACK, THREAD, name="a task"),
    track(COUNTER_TRACK, PROCESS, name="queue", counter=CounterDescriptor()),
    track(ALONE, name="alone"),
]


def at(time: int, kind: int, uuid: int = THREAD, **fields: Any) -> TracePacket:
    return TracePacket(timestamp=time, track_event=TrackEvent(type=kind, track_uuid=uuid, **fields))


def events(*packets: TracePacket) -> list[Event]:
    trace, _ = exported(file_of(*TRACKS, *packets))
    return [each for each in records_of(trace) if isinstance(each, Event)]


def left_out(*packets: TracePacket) -> dict[str, int]:
    return dict(exported(file_of(*TRACKS, *packets))[1].left_out)


def test_names_of_processes_and_threads_are_written_before_events() -> None:
    trace, outcome = exported(file_of(*TRACKS, at(5, INSTANT, TRACK), at(6, INSTANT, PROCESS)))
    records = records_of(trace)
    assert isinstance(records[0], ProviderInfo)
    objects = [each for each in records if isinstance(each, KernelObject)]
    named = [(each.type, each.name) for each in objects]
    assert named == [
        (fxt.PROCESS_OBJECT, "shell"),
        (fxt.THREAD_OBJECT, "shell"),
        (fxt.THREAD_OBJECT, "main"),
        (fxt.THREAD_OBJECT, "a task"),
        (fxt.THREAD_OBJECT, "alone"),
        (fxt.PROCESS_OBJECT, "tracks without a process"),
    ]
    assert objects[2].id == 11
    assert objects[3].arguments == (
        Argument("process", fxt.KOID, 10),
        Argument("stretto.track", fxt.UINT64, TRACK),
        Argument("stretto.parent", fxt.UINT64, THREAD),
    )
    # Events on a track without a thread are written on a thread of the track's process.
    threads = [each.thread for each in records if isinstance(each, Event)]
    assert [each.process for each in threads] == [10, 10]
    assert [each.thread for each in threads] == [objects[3].id, objects[1].id]
    assert outcome.made == {"process": 2, "track": 4, "instant": 2}


def test_slices_are_sorted_by_time() -> None:
    found = events(
        at(30, END), at(10, BEGIN, name="a", categories=["x", "y"]), at(20, INSTANT, name="b")
    )
    assert found == [
        Event(fxt.DURATION_BEGIN, 10, HERE, "x,y", "a"),
        Event(fxt.INSTANT, 20, HERE, "", "b"),
        Event(fxt.DURATION_END, 30, HERE, "", ""),
    ]


def test_flow_records_begin_step_and_end_in_time_order() -> None:
    found = events(
        at(40, END, flow_ids=[7]),
        at(30, INSTANT, name="c", terminating_flow_ids=[7]),
        at(20, BEGIN, name="b", flow_ids=[7, 8]),
        at(10, BEGIN, name="a", flow_ids=[7]),
    )
    assert [(each.type, each.timestamp, each.id) for each in found] == [
        (fxt.DURATION_BEGIN, 10, 0),
        (fxt.FLOW_BEGIN, 10, 7),
        (fxt.DURATION_BEGIN, 20, 0),
        (fxt.FLOW_STEP, 20, 7),
        (fxt.FLOW_BEGIN, 20, 8),
        # A flow point needs a duration, so the instant is written as a duration.
        (fxt.DURATION_BEGIN, 30, 0),
        (fxt.FLOW_END, 30, 7),
        (fxt.DURATION_END, 30, 0),
        (fxt.FLOW_BEGIN, 40, 7),
        (fxt.DURATION_END, 40, 0),
    ]
    assert {each.name for each in found if each.id} == {"flow"}


def test_flow_end_without_a_beginning_is_counted() -> None:
    assert left_out(at(10, INSTANT, terminating_flow_ids=[7])) == {
        "ends of flows that have no beginning": 1
    }


def test_number_of_open_flows_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "_MAX_FLOWS", 2)
    found = events(
        *(at(time, BEGIN, flow_ids=[time]) for time in (1, 2, 3)), at(4, END, flow_ids=[1, 3])
    )
    kinds = [each.type for each in found if each.id]
    assert kinds == [fxt.FLOW_BEGIN] * 3 + [fxt.FLOW_BEGIN, fxt.FLOW_STEP]


def test_arguments_are_converted_by_type() -> None:
    nested = DebugAnnotation(
        name="n",
        dict_entries=[
            DebugAnnotation(name="a", array_values=[DebugAnnotation(int_value=1 << 40)]),
            DebugAnnotation(name="b", bool_value=True),
        ],
    )
    plain = [
        DebugAnnotation(name="s", string_value="é"),
        DebugAnnotation(name="i", int_value=-1),
        DebugAnnotation(name="u", uint_value=1),
        DebugAnnotation(name="v", uint_value=1 << 63),
        DebugAnnotation(name="d", double_value=0.5),
        DebugAnnotation(name="p", pointer_value=9),
        DebugAnnotation(name="j", legacy_json_value="[]"),
        DebugAnnotation(name="none"),
    ]
    (found,) = events(at(1, INSTANT, debug_annotations=[nested, *plain]))
    assert found.arguments == (
        Argument("n.a[0]", fxt.INT64, 1 << 40),
        Argument("n.b", fxt.BOOL, True),
        Argument("s", fxt.TEXT, "é"),
        Argument("i", fxt.INT32, -1),
        Argument("u", fxt.UINT32, 1),
        Argument("v", fxt.UINT64, 1 << 63),
        Argument("d", fxt.DOUBLE, 0.5),
        Argument("p", fxt.POINTER, 9),
        Argument("j", fxt.TEXT, "[]"),
        Argument("none", fxt.NULL, None),
    )


def test_too_many_nested_arguments_are_converted_to_json_text() -> None:
    elements = [DebugAnnotation(int_value=each) for each in range(16)]
    nested = DebugAnnotation(
        name="n",
        dict_entries=[
            DebugAnnotation(name="é", array_values=elements),
            DebugAnnotation(name="b", bool_value=True),
        ],
    )
    plain = DebugAnnotation(name="s", string_value="x")
    (found,) = events(at(1, INSTANT, debug_annotations=[plain, nested]))
    numbers = ",".join(map(str, range(16)))
    assert found.arguments == (
        Argument("s", fxt.TEXT, "x"),
        Argument("n", fxt.TEXT, f'{{"é":[{numbers}],"b":true}}'),
    )


def test_too_deeply_nested_arguments_are_counted() -> None:
    deep = DebugAnnotation(name="deep")
    for _ in range(22):
        deep = DebugAnnotation(name="deep", dict_entries=[deep])
    _, outcome = exported(file_of(at(1, INSTANT, debug_annotations=[deep])))
    assert outcome.left_out == {"arguments nested deeper than 20": 1}


def test_interned_names_and_values_are_resolved() -> None:
    packet = at(
        1, INSTANT, name_iid=1, category_iids=[2],
        debug_annotations=[DebugAnnotation(name_iid=3, string_value_iid=4)],
    )  # fmt: skip
    packet.sequence_flags = 1
    packet.interned_data = InternedData(
        event_names=[EventName(iid=1, name="event")],
        event_categories=[EventCategory(iid=2, name="category")],
        debug_annotation_string_values=[InternedString(iid=4, str=b"value")],
    )
    (found,) = events(packet)
    argument = Argument('""', fxt.TEXT, "value")
    assert found == Event(fxt.INSTANT, 1, HERE, "category", "event", (argument,))


def test_counters_are_converted_with_unit_and_increments() -> None:
    increments = CounterDescriptor(is_incremental=True, unit_multiplier=10)
    found = events(
        track(6, THREAD, name="queue", counter=CounterDescriptor()),
        track(7, name="sums", counter=increments),
        at(1, COUNTER, COUNTER_TRACK, counter_value=3),
        at(2, COUNTER, 6, double_counter_value=0.5),
        at(3, COUNTER, 7, counter_value=3),
        at(4, COUNTER, 7, counter_value=4),
    )
    shown = [(each.thread, each.name, each.id, each.arguments[0]) for each in found]
    assert shown == [
        (Thread(10, 10), "queue", 0, Argument("value", fxt.INT32, 3)),
        (HERE, "queue", 1, Argument("value", fxt.DOUBLE, 0.5)),
        (Thread(1 << 30, 1 << 30), "sums", 0, Argument("value", fxt.INT32, 30)),
        (Thread(1 << 30, 1 << 30), "sums", 0, Argument("value", fxt.INT32, 70)),
    ]


def test_omitted_packets_and_arguments_are_counted() -> None:
    many = [DebugAnnotation(name=str(each), int_value=each) for each in range(17)]
    deep = DebugAnnotation(name="x" * 3000, string_value="x" * 30_000)
    events = TrackEvent(type=INSTANT, track_uuid=THREAD)
    assert left_out(
        TracePacket(ftrace_events=FtraceEventBundle()),
        TracePacket(
            timestamp=1, track_event=events, sequence_flags=2, trusted_packet_sequence_id=9
        ),
        at(1 << 63, INSTANT),
        at(1, COUNTER, COUNTER_TRACK),
        at(1, INSTANT, debug_annotations=[*many, deep]),
        at(2, INSTANT, debug_annotations=[deep]),
        at(3, 77),
    ) == {
        "packets with ftrace_events": 1,
        "events whose incremental state was lost": 1,
        "events at impossible times": 1,
        "counters without a value": 1,
        "arguments that did not fit into their record": 3,
        "texts cut to the maximum length": 4,
        "track events of unknown types": 1,
    }


def test_thread_times_and_other_counters_of_events_are_counted_as_left_out() -> None:
    assert left_out(
        at(1, INSTANT, thread_time_absolute_us=5, extra_counter_values=[3, 4]),
        at(2, INSTANT, thread_time_delta_us=5, thread_instruction_count_absolute=1),
        at(3, INSTANT, thread_instruction_count_delta=1, extra_double_counter_values=[0.5]),
    ) == {
        "packets with thread_time_absolute_us": 1,
        "packets with extra_counter_values": 1,
        "packets with thread_time_delta_us": 1,
        "packets with thread_instruction_count_absolute": 1,
        "packets with thread_instruction_count_delta": 1,
        "packets with extra_double_counter_values": 1,
    }


def test_losses_are_marked_by_a_provider_event() -> None:
    marks = [
        [
            each
            for each in records_of(exported(file_of(*packets))[0])
            if isinstance(each, ProviderEvent)
        ]
        for packets in (
            [at(1, INSTANT)],
            [TracePacket(sequence_flags=2, track_event=TrackEvent(type=3))],
        )
    ]
    assert marks == [[], [ProviderEvent(1, fxt.BUFFER_FILLED)]]


def test_recording_of_stretto_is_converted_completely() -> None:
    job = stretto.Track("job")
    with record() as recorded, category.slice("frame", number=3, flow=5):
        category.begin("upload", track=job, terminating_flow=5)
        category.end(track=job)
        category.counter("queue", 2)
    trace, outcome = exported(recorded.trace)
    names = {each.name for each in records_of(trace) if isinstance(each, Event | KernelObject)}
    assert {"frame", "upload", "queue", "job", "flow"} <= names
    assert outcome.left_out == {}
    assert outcome.made["flow point"] == 2
