"""Conversion of FXT records to Perfetto packets."""

from __future__ import annotations

import io
from typing import Any

import pytest

from stretto.analysis.fxt import enclosing, importer, thread_tracks
from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.records import Argument, Event, Thread
from stretto.analysis.rpc_flows import read_rpc_flows
from stretto.protos.trace import TracePacket, TrackEvent
from stretto.protozero.wire import bytes_field
from stretto.testing.decoded_packets import decode_packets
from tests.support.fxt_traces import CLIENT, SERVER, FxtTrace, exported, imported
from tests.support.recorded_events import BEGIN, COUNTER, END, INSTANT, descriptors_of


def events_of(trace: bytes) -> list[TrackEvent]:
    """Return the track events of a trace with their interned names resolved."""
    names: dict[int, str] = {}
    found = []
    for packet in decode_packets(trace):
        if packet.has("interned_data"):
            data = packet.interned_data
            names |= {entry.iid << 2: entry.name for entry in data.event_names}
            names |= {entry.iid << 2 | 1: entry.name for entry in data.event_categories}
            names |= {entry.iid << 2 | 2: entry.name for entry in data.debug_annotation_names}
        if packet.has("track_event"):
            event = packet.track_event
            event.name = names.get(event.name_iid << 2, event.name)
            event.categories = [names[iid << 2 | 1] for iid in event.category_iids]
            for entry in event.debug_annotations:
                entry.name = names.get(entry.name_iid << 2 | 2, entry.name)
            found.append(event)
    return found


def joined(trace: bytes) -> list[tuple[int, str, list[int], list[int]]]:
    """Return (type, name, flows, terminating flows) of all events with flows."""
    return [
        (each.type, each.name, each.flow_ids, each.terminating_flow_ids)
        for each in events_of(trace)
        if each.flow_ids or each.terminating_flow_ids
    ]


def arguments(event: TrackEvent) -> dict[str, Any]:
    values = {}
    for entry in event.debug_annotations:
        (field,) = entry.set_fields().keys() - {"name", "name_iid"}
        values[entry.name] = (field.removesuffix("_value"), getattr(entry, field))
    return values


def test_slices_and_instants_are_on_the_tracks_of_their_threads() -> None:
    trace = FxtTrace()
    trace.event(fxt.DURATION_BEGIN, 100, CLIENT, "outer")
    trace.event(fxt.INSTANT, 150, SERVER, "now")
    trace.event(fxt.DURATION_END, 200, CLIENT)
    data, outcome = imported(trace.data)
    events = events_of(data)
    tracks = descriptors_of(data)
    assert [(each.type, each.name, each.categories) for each in events] == [
        (BEGIN, "outer", ["test"]),
        (INSTANT, "now", ["test"]),
        (END, "", ["test"]),
    ]
    client, server = tracks[events[0].track_uuid], tracks[events[1].track_uuid]
    assert client.thread is not None
    assert server.thread is not None
    assert (client.thread.pid, client.thread.tid, client.thread.thread_name) == (10, 11, "main")
    assert (server.thread.pid, server.thread.tid) == (20, 21)
    process = tracks[client.parent_uuid].process
    assert process is not None
    assert (process.pid, process.process_name) == (10, "client")
    assert outcome.made == {"slice": 1, "instant": 1}
    assert not outcome.left_out


def test_complete_duration_with_the_same_begin_and_a_later_end_is_the_outer_slice() -> None:
    trace = FxtTrace()
    trace.event(fxt.FLOW_BEGIN, 100, CLIENT, number=7)
    trace.event(fxt.DURATION_COMPLETE, 100, CLIENT, "inner", end=150)
    trace.event(fxt.DURATION_COMPLETE, 100, CLIENT, "outer", end=200)
    trace.event(fxt.DURATION_COMPLETE, 200, CLIENT, "next", end=200)
    data, _ = imported(trace.data)
    events = [(each.type, each.name) for each in events_of(data)]
    assert events == [
        (BEGIN, "outer"),
        (BEGIN, "inner"),
        (END, ""),
        (END, ""),
        (INSTANT, "next"),
    ]
    assert joined(data) == [(BEGIN, "inner", [7], [])]


def test_arguments_of_all_types_are_converted() -> None:
    trace = FxtTrace()
    values = [
        Argument("null", fxt.NULL, None),
        Argument("int32", fxt.INT32, -4),
        Argument("uint32", fxt.UINT32, 4),
        Argument("int64", fxt.INT64, -(1 << 60)),
        Argument("uint64", fxt.UINT64, 1 << 63),
        Argument("double", fxt.DOUBLE, 0.5),
        Argument("text", fxt.TEXT, "é"),
        Argument("pointer", fxt.POINTER, 5),
        Argument("koid", fxt.KOID, 6),
        Argument("bool", fxt.BOOL, False),
        Argument("bytes", fxt.BYTES, b"\x01\xff"),
    ]
    trace.records.event(Event(fxt.INSTANT, 1, CLIENT, "", "x", tuple(values)))
    data, _ = imported(trace.data)
    (event,) = events_of(data)
    assert event.categories == []
    assert arguments(event) == {
        "null": ("string", "null"),
        "int32": ("int", -4),
        "uint32": ("uint", 4),
        "int64": ("int", -(1 << 60)),
        "uint64": ("uint", 1 << 63),
        "double": ("double", 0.5),
        "text": ("string", "é"),
        "pointer": ("pointer", 5),
        "koid": ("uint", 6),
        "bool": ("bool", False),
        "bytes": ("string", "01ff"),
    }


def test_counters_have_a_track_for_each_process_and_value() -> None:
    trace = FxtTrace()
    trace.event(fxt.COUNTER, 1, CLIENT, "queue", value=3)
    trace.event(fxt.COUNTER, 2, CLIENT, "memory", used=1 << 40, free=0.5, text="no number")
    trace.event(fxt.COUNTER, 3, SERVER, "queue", value=4)
    trace.event(fxt.COUNTER, 4, CLIENT, "queue", value=5, number=1)
    trace.records.event(
        Event(fxt.COUNTER, 5, CLIENT, "", "queue", (Argument("value", fxt.UINT64, 1 << 63),))
    )
    data, outcome = imported(trace.data)
    tracks = descriptors_of(data)
    found = []
    for event in events_of(data):
        track = tracks[event.track_uuid]
        assert event.type == COUNTER
        assert track.has("counter")
        process = tracks[track.parent_uuid].process
        assert process is not None
        ratio = event.has("double_counter_value")
        value = event.double_counter_value if ratio else event.counter_value
        found.append((process.pid, track.name, value))
    assert found == [
        (10, "queue", 3),
        (10, "memory:used", 1 << 40),
        (10, "memory:free", 0.5),
        (20, "queue", 4),
        (10, "queue", 5),
        (10, "queue", 2.0**63),
    ]
    assert len({event.track_uuid for event in events_of(data)}) == 5
    assert outcome.left_out == {"non-numeric arguments of counters": 1}


def test_asynchronous_operations_have_their_own_tracks() -> None:
    trace = FxtTrace()
    trace.event(fxt.ASYNC_BEGIN, 1, CLIENT, "load", number=5)
    trace.event(fxt.ASYNC_BEGIN, 2, SERVER, "other", number=5)
    trace.event(fxt.ASYNC_BEGIN, 3, CLIENT, "part", number=5)
    trace.event(fxt.ASYNC_INSTANT, 4, CLIENT, "half", number=5)
    trace.event(fxt.ASYNC_END, 5, Thread(10, 12), "part", number=5)
    trace.event(fxt.ASYNC_END, 6, CLIENT, "load", number=5)
    trace.event(fxt.ASYNC_END, 7, CLIENT, "load", number=5)
    data, outcome = imported(trace.data)
    tracks = descriptors_of(data)
    found = [(tracks[each.track_uuid].name, each.type, each.name) for each in events_of(data)]
    assert found == [
        ("load", BEGIN, "load"),
        ("other", BEGIN, "other"),
        ("load", BEGIN, "part"),
        ("load", INSTANT, "half"),
        ("load", END, "part"),
        ("load", END, "load"),
    ]
    assert outcome.left_out == {"ends of operations without a known beginning": 1}


class TestFlowConversion:
    def test_call_with_four_flow_points_has_one_flow(self) -> None:
        trace = FxtTrace()
        trace.event(fxt.DURATION_BEGIN, 100, CLIENT, "call")
        trace.event(fxt.FLOW_BEGIN, 101, CLIENT, number=7)
        trace.slice(110, 150, SERVER, "handle", [(fxt.FLOW_STEP, 7)])
        trace.slice(160, 160, SERVER, "reply", [(fxt.FLOW_STEP, 7)])
        trace.slice(170, 170, CLIENT, "replied", [(fxt.FLOW_END, 7)])
        trace.event(fxt.DURATION_END, 180, CLIENT)
        data, outcome = imported(trace.data)
        assert joined(data) == [
            (BEGIN, "call", [7], []),
            (BEGIN, "handle", [7], []),
            (BEGIN, "reply", [7], []),
            (BEGIN, "replied", [], [7]),
        ]
        assert not outcome.left_out
        assert outcome.made["flow point"] == 4

    def test_flow_point_belongs_to_the_innermost_slice(self) -> None:
        trace = FxtTrace()
        trace.event(fxt.DURATION_BEGIN, 1, CLIENT, "outer")
        trace.slice(2, 3, CLIENT, "inner", [(fxt.FLOW_BEGIN, 1)])
        trace.event(fxt.FLOW_BEGIN, 4, CLIENT, number=2)
        trace.event(fxt.INSTANT, 5, CLIENT, "instant")
        trace.event(fxt.FLOW_BEGIN, 5, CLIENT, number=3)
        trace.event(fxt.FLOW_BEGIN, 6, CLIENT, number=4)
        data, _ = imported(trace.data)
        assert joined(data) == [
            (BEGIN, "outer", [2, 4], []),
            (BEGIN, "inner", [1], []),
            (INSTANT, "instant", [3], []),
        ]

    def test_flow_that_ends_in_its_first_slice_terminates_at_the_end_of_the_slice(self) -> None:
        trace = FxtTrace()
        trace.event(fxt.DURATION_BEGIN, 100, CLIENT, "call")
        trace.event(fxt.FLOW_BEGIN, 101, CLIENT, number=7)
        trace.slice(110, 150, SERVER, "handle", [(fxt.FLOW_STEP, 7)])
        trace.event(fxt.FLOW_END, 160, CLIENT, number=7)
        trace.event(fxt.DURATION_END, 180, CLIENT)
        data, outcome = imported(trace.data)
        assert joined(data) == [
            (BEGIN, "call", [7], []),
            (BEGIN, "handle", [7], []),
            (END, "", [], [7]),
        ]
        assert not outcome.left_out

    def test_flow_can_begin_and_end_in_the_same_slice(self) -> None:
        trace = FxtTrace()
        points = [(fxt.FLOW_BEGIN, 3), (fxt.FLOW_STEP, 3), (fxt.FLOW_END, 3)]
        trace.slice(4, 5, CLIENT, "a", points)
        data, outcome = imported(trace.data)
        assert joined(data) == [(BEGIN, "a", [3, 3], [3])]
        assert not outcome.left_out

    def test_flow_id_that_ends_and_begins_in_one_slice_makes_two_flows(self) -> None:
        trace = FxtTrace()
        trace.slice(1, 2, CLIENT, "a", [(fxt.FLOW_BEGIN, 3)])
        trace.slice(3, 4, CLIENT, "b", [(fxt.FLOW_END, 3), (fxt.FLOW_BEGIN, 3)])
        trace.slice(5, 6, CLIENT, "c", [(fxt.FLOW_END, 3)])
        data, outcome = imported(trace.data)
        points = {name: (begins, ends) for _, name, begins, ends in joined(data) if name}
        (new,) = points["b"][0]
        assert new != 3
        assert points == {"a": ([3], []), "b": ([new], [3]), "c": ([], [new])}
        assert not outcome.left_out

    def test_flow_points_that_cannot_be_connected_are_counted(self) -> None:
        trace = FxtTrace()
        trace.event(fxt.FLOW_BEGIN, 1, CLIENT, number=1)
        trace.slice(2, 3, CLIENT, "a", [(fxt.FLOW_END, 2)])
        trace.event(fxt.DURATION_BEGIN, 6, CLIENT, "open")
        trace.event(fxt.FLOW_BEGIN, 7, CLIENT, number=4)
        trace.slice(8, 9, SERVER, "c", [(fxt.FLOW_STEP, 4)])
        trace.event(fxt.FLOW_STEP, 10, CLIENT, number=4)
        trace.event(fxt.FLOW_STEP, 11, CLIENT, number=4)
        _, outcome = imported(trace.data)
        assert outcome.left_out == {
            "flow points in no duration": 1,
            "flow points whose flow has no known beginning": 1,
            "flow points that return to an earlier duration": 1,
            "flow points in durations that never end": 1,
        }

    def test_equal_flow_ids_of_two_processes_become_different_ids(self) -> None:
        trace = FxtTrace()
        trace.slice(1, 2, CLIENT, "a", [(fxt.FLOW_BEGIN, 1)])
        trace.slice(1, 2, SERVER, "b", [(fxt.FLOW_BEGIN, 1)])
        trace.slice(3, 4, SERVER, "c", [(fxt.FLOW_END, 1)])
        trace.slice(3, 4, CLIENT, "d", [(fxt.FLOW_END, 1)])
        data, _ = imported(trace.data)
        ids = {name: (begins or ends)[0] for _, name, begins, ends in joined(data)}
        assert ids["a"] == ids["d"] != ids["b"] == ids["c"]


class TestChannelMessages:
    def test_kernel_channel_messages_make_a_call(self) -> None:
        trace = FxtTrace()
        for time, thread, kind in (
            (100, CLIENT, fxt.FLOW_BEGIN),
            (110, SERVER, fxt.FLOW_STEP),
            (150, SERVER, fxt.FLOW_STEP),
            (170, CLIENT, fxt.FLOW_END),
        ):
            trace.message(time, thread, (kind, 5 << 32 | 1 << 31 | 3), 0xF00D_0000_0000_0000)
        data, outcome = imported(trace.data)
        begins = [each for each in events_of(data) if each.type == BEGIN]
        assert {each.name for each in begins} == {"ordinal 0xf00d000000000000"}
        (call,) = read_rpc_flows(io.BytesIO(data)).calls
        assert (call.method, call.kind) == ("ordinal 0xf00d000000000000", "request")
        assert (call.latency_ns, call.queueing_ns, call.service_ns) == (70, 10, 40)
        assert not outcome.left_out

    def test_request_and_reply_with_a_transaction_id_make_a_call(self) -> None:
        trace = FxtTrace()
        number = 5 << 32 | 1 << 31 | 3
        for start in (100, 200):
            trace.message(start, CLIENT, (fxt.FLOW_BEGIN, number))
            trace.message(start + 10, SERVER, (fxt.FLOW_END, number))
            trace.message(start + 50, SERVER, (fxt.FLOW_BEGIN, number))
            trace.message(start + 70, CLIENT, (fxt.FLOW_END, number))
        data, _ = imported(trace.data)
        calls = read_rpc_flows(io.BytesIO(data)).calls
        assert [(call.kind, call.latency_ns, call.service_ns) for call in calls] == [
            ("request", 70, 40),
            ("request", 70, 40),
        ]

    def test_message_without_a_transaction_id_is_one_way(self) -> None:
        trace = FxtTrace()
        trace.message(100, CLIENT, (fxt.FLOW_BEGIN, 5 << 32 | 3))
        trace.message(110, SERVER, (fxt.FLOW_END, 5 << 32 | 3))
        data, _ = imported(trace.data)
        (call,) = read_rpc_flows(io.BytesIO(data)).calls
        assert (call.kind, call.latency_ns, call.matched) == ("one-way", 10, True)

    def test_message_with_a_method_argument_is_named_after_the_method(self) -> None:
        trace = FxtTrace()
        here = {"category": "kernel:ipc"}
        trace.event(
            fxt.DURATION_BEGIN, 1, CLIENT, "ChannelMessage", ordinal=5, method="Greet", **here
        )
        trace.event(fxt.FLOW_BEGIN, 1, CLIENT, "ChannelFlow", number=7, **here)
        data, _ = imported(trace.data)
        (event,) = events_of(data)
        assert event.name == "Greet"
        assert arguments(event)["method"] == ("string", "Greet")
        assert arguments(event)["role"] == ("string", "send")

    def test_message_without_an_ordinal_keeps_its_name(self) -> None:
        trace = FxtTrace()
        trace.event(fxt.DURATION_BEGIN, 1, CLIENT, "ChannelMessage", category="kernel:ipc")
        data, _ = imported(trace.data)
        assert [each.name for each in events_of(data)] == ["ChannelMessage"]


def test_blobs_that_contain_perfetto_packets_are_copied() -> None:
    trace = FxtTrace()
    packets = {
        name: b"".join(
            bytes_field(1, TracePacket(timestamp=at, trusted_uid=uid).encode())
            for at in range(1000)
        )
        for name, uid in (("a", 1), ("b", 2))
    }
    for start in range(0, 5000, 700):
        for name, data in packets.items():
            trace.records.blob(fxt.PERFETTO_BLOB, name, data[start : start + 700])
    trace.records.blob(1, "raw", b"...")
    data, outcome = imported(trace.data)
    whole = {name: text[:5600] for name, text in packets.items()}
    assert data.endswith(whole["a"] + whole["b"])
    assert outcome.left_out == {"blobs of other data": 1}


def test_large_process_and_thread_ids_are_mapped_to_small_ids() -> None:
    trace = FxtTrace()
    threads = [Thread(1 << 40, 1 << 50), Thread(1 << 40, 1 << 63), Thread(0, 5)]
    for thread in threads:
        trace.event(fxt.INSTANT, 1, thread, "x")
    data, _ = imported(trace.data)
    tracks = descriptors_of(data)
    found = []
    for event in events_of(data):
        thread_descriptor = tracks[event.track_uuid].thread
        assert thread_descriptor is not None
        found.append((thread_descriptor.pid, thread_descriptor.tid))
    assert len({tid for _, tid in found}) == 3
    assert found[0][0] == found[1][0] > 1 << 30
    assert found[2] == (0, 5)


def test_sizes_of_all_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_tracks, "MAX_OBJECTS", 4)
    monkeypatch.setattr(enclosing, "_MAX_THREADS", 4)
    monkeypatch.setattr(importer, "_MAX_BLOBS", 1)
    trace = FxtTrace()
    for number in range(10):
        thread = Thread(10, 100 + number)
        trace.records.kernel_object(fxt.PROCESS_OBJECT, 100 + number, "p")
        trace.slice(1, 2, thread, "x", [(fxt.FLOW_BEGIN, number)])
        trace.event(fxt.COUNTER, 1, thread, f"counter {number}", value=1)
        trace.event(fxt.ASYNC_BEGIN, 1, thread, "operation", number=number)
        trace.records.blob(fxt.PERFETTO_BLOB, str(number), b"x")
    _, outcome = imported(trace.data)
    assert outcome.left_out == {
        "processes and threads without room for their names": 8,
        "flow points on threads beyond 4": 6,
        "events of threads beyond the limit": 16,
        "values of counters beyond the limit": 6,
        "ends of operations without a known beginning": 6,
        "parts of blobs beyond 1": 9,
    }


def test_slices_deeper_than_the_maximum_depth_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enclosing, "_MAX_DEPTH", 2)
    trace = FxtTrace()
    for name in "abcd":
        trace.event(fxt.DURATION_BEGIN, 1, CLIENT, name)
    for _ in "dc":
        trace.event(fxt.DURATION_END, 2, CLIENT)
    trace.event(fxt.FLOW_BEGIN, 3, CLIENT, number=1)
    data, _ = imported(trace.data)
    assert joined(data) == [(BEGIN, "b", [1], [])]


def test_events_at_impossible_times_are_counted() -> None:
    trace = FxtTrace()
    trace.event(fxt.INSTANT, 1 << 63, CLIENT, "late")
    trace.event(fxt.DURATION_COMPLETE, 5, CLIENT, "backwards", end=4)
    data, outcome = imported(trace.data)
    assert events_of(data) == []
    assert outcome.left_out == {"events at impossible times": 2}


def test_cycle_of_parent_tracks_is_broken() -> None:
    trace = FxtTrace()
    for number in range(3):
        trace.records.kernel_object(
            fxt.THREAD_OBJECT,
            100 + number,
            "round",
            [
                Argument("process", fxt.KOID, 10),
                Argument("stretto.track", fxt.UINT64, 1000 + number),
                Argument("stretto.parent", fxt.UINT64, 1000 + (number + 1) % 3),
            ],
        )
        trace.event(fxt.INSTANT, 1, Thread(10, 100 + number), "x")
    data, _ = imported(trace.data)
    tracks = descriptors_of(data)
    parents = [tracks[1000 + number].parent_uuid for number in range(3)]
    assert parents == [1001, 1002, 0]
    assert [each.track_uuid for each in events_of(data)] == [1000, 1001, 1002]


def test_damaged_records_are_counted() -> None:
    trace = FxtTrace()
    trace.records.provider_event(1)
    _, outcome = imported(trace.data + bytes(80))
    assert outcome.left_out == {
        "damaged records": 1,
        "losses reported by providers with a full buffer": 1,
    }


def test_flows_are_unchanged_after_conversion_to_fxt_and_back() -> None:
    trace = FxtTrace()
    trace.slice(1, 2, CLIENT, "a", [(fxt.FLOW_BEGIN, 1)])
    trace.slice(3, 4, SERVER, "b", [(fxt.FLOW_END, 1)])
    first, _ = imported(trace.data)
    second, _ = imported(exported(first)[0])
    assert joined(second) == joined(first)
    assert descriptors_of(second).keys() == descriptors_of(first).keys()
