"""Traces are equal after conversion to FXT and back; any FXT converts to a readable trace."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.records import Argument, Event, Thread
from stretto.analysis.track_events import BEGIN, COUNTER, END, INSTANT, TrackEvents
from stretto.protos.trace import DebugAnnotation, Trace, TracePacket, TrackDescriptor, TrackEvent
from stretto.protozero.wire import bytes_field
from tests.property.test_fxt_records import argument_lists, plausible, texts, words
from tests.support.examples import examples
from tests.support.fxt_traces import CLIENT, FxtTrace, exported, imported

pytestmark = pytest.mark.once

steps = st.lists(
    st.tuples(
        st.integers(1, 3),  # uuid of the track
        st.sampled_from([BEGIN, END, INSTANT]),
        st.integers(0, 2),  # nanoseconds between the previous step and this one
        st.lists(st.integers(1, 4), max_size=2, unique=True),
        st.lists(st.integers(1, 4), max_size=2, unique=True),
    ),
    max_size=30,
)


def made_of(drawn: list[tuple[int, int, int, list[int], list[int]]]) -> bytes:
    """Return a trace of the drawn steps; an END is written only if a slice is open."""
    packets = [
        TracePacket(track_descriptor=TrackDescriptor(uuid=uuid, name=f"track {uuid}"))
        for uuid in (1, 2, 3)
    ]
    depth: dict[int, int] = defaultdict(int)
    time = 1000
    for number, (track, kind, passed, flows, ends) in enumerate(drawn):
        time += passed
        if kind == END and not depth[track]:
            kind = BEGIN
        depth[track] += {BEGIN: 1, END: -1}.get(kind, 0)
        event = TrackEvent(type=kind, track_uuid=track)
        if kind != END:
            event.name = f"event {number}"
            event.flow_ids = flows
            event.terminating_flow_ids = ends
        packets.append(TracePacket(timestamp=time, track_event=event))
    return b"".join(bytes_field(1, packet.encode()) for packet in packets)


def shape(trace: bytes) -> list[tuple[object, ...]]:
    """Return the events and their flows; instants are returned as slices of duration 0."""
    events = TrackEvents(io.BytesIO(trace))
    found: list[tuple[object, ...]] = []
    active: set[int] = set()
    for event in events:
        going = [flow for flow in event.flows if flow not in event.ending]
        points = [(flow, "step" if flow in active else "begin") for flow in going]
        active |= set(going)
        points += [(flow, "end") for flow in event.ending if flow in active]
        active -= set(event.ending)
        kind = BEGIN if event.kind == INSTANT else event.kind
        found.append((kind, event.track, event.timestamp, event.name, points))
        if event.kind == INSTANT:
            found.append((END, event.track, event.timestamp, "", []))
    assert (events.damaged, events.skipped) == (0, 0)
    return found


@given(steps)
def test_trace_is_equal_after_conversion_to_fxt_and_back(
    drawn: list[tuple[int, int, int, list[int], list[int]]],
) -> None:
    trace = made_of(drawn)
    there, _ = exported(trace)
    back, outcome = imported(there)
    assert shape(back) == shape(trace)
    assert outcome.left_out == {}


names = st.text('ab.[]"\\01', max_size=6) | st.text(st.characters(codec="utf-8"), max_size=9)
leaves = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | names
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def annotation(value: Any) -> DebugAnnotation:
    if isinstance(value, dict):
        return DebugAnnotation(dict_entries=list(map(named, value.items())))
    if isinstance(value, list):
        return DebugAnnotation(array_values=list(map(annotation, value)))
    kind = {bool: "bool_value", int: "int_value", str: "string_value"}.get(type(value))
    return DebugAnnotation(**{kind: value}) if kind else DebugAnnotation()


def named(item: tuple[str, Any]) -> DebugAnnotation:
    made = annotation(item[1])
    made.name = item[0]
    return made


def annotations_of(trace: bytes) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the name and annotations of the only event, with interned values resolved."""
    known: dict[int, str] = {}
    event_names: dict[int, str] = {}
    for packet in Trace.decode(trace).packet:
        if packet.interned_data is not None:
            known.update(
                (each.iid, each.name) for each in packet.interned_data.debug_annotation_names
            )
            event_names.update((each.iid, each.name) for each in packet.interned_data.event_names)
        if packet.track_event is not None:
            event = packet.track_event
    found = []
    for each in event.debug_annotations:
        name = known[each.name_iid] if each.name_iid else each.name
        each.name, each.name_iid = "", 0
        found.append((name, each.encode()))
    return event_names[event.name_iid] if event.name_iid else event.name, found


@given(names, st.dictionaries(names, values, max_size=2))
def test_arguments_are_equal_after_conversion_to_fxt_and_back(
    name: str, drawn: dict[str, Any]
) -> None:
    event = TrackEvent(type=INSTANT, track_uuid=1, name=name)
    event.debug_annotations = list(map(named, drawn.items()))
    packets = [
        TracePacket(track_descriptor=TrackDescriptor(uuid=1, name="track")),
        TracePacket(timestamp=1, track_event=event),
    ]
    trace = b"".join(bytes_field(1, packet.encode()) for packet in packets)
    there, _ = exported(trace)
    back, outcome = imported(there)
    assert outcome.left_out == {}
    assert annotations_of(back) == annotations_of(trace)


@given(names, names)
def test_argument_names_of_foreign_fxt_are_not_split_at_dots_or_brackets(
    first: str, second: str
) -> None:
    trace = FxtTrace()
    arguments = Argument(first, fxt.TEXT, "x"), Argument(second, fxt.NULL, None)
    trace.records.event(Event(fxt.INSTANT, 1, CLIENT, "", "", arguments))
    wanted = (
        "",
        [
            (first, DebugAnnotation(name="", name_iid=0, string_value="x").encode()),
            (second, DebugAnnotation(name="", name_iid=0, string_value="null").encode()),
        ],
    )
    data, _ = imported(trace.data)
    assert annotations_of(data) == wanted
    # The annotation names stay the same after conversion to FXT and back.
    assert annotations_of(imported(exported(data)[0])[0]) == wanted


small = st.integers(0, 3)
events = st.builds(
    Event,
    st.integers(0, 10),
    st.integers(0, 20) | st.integers(0, (1 << 64) - 1),
    st.builds(Thread, small, small),
    texts | st.just("kernel:ipc"),
    texts | st.sampled_from(["ChannelMessage", "ChannelFlow", "a.b", "a[0]"]),
    argument_lists | st.builds(lambda value: (Argument("ordinal", fxt.UINT64, value),), small),
    small,
    st.integers(0, 20),
)


@settings(max_examples=examples(60))
@given(st.lists(events, max_size=40))
def test_any_fxt_events_convert_to_a_readable_trace(drawn: list[Event]) -> None:
    trace = FxtTrace()
    for event in drawn:
        trace.records.event(event)
    data, outcome = imported(trace.data)
    read = TrackEvents(io.BytesIO(data))
    kinds = [event.kind for event in read]
    assert (read.damaged, read.skipped) == (0, 0)
    made = outcome.made
    assert kinds.count(BEGIN) == made["slice"]
    assert kinds.count(INSTANT) == made["instant"]
    assert kinds.count(COUNTER) == made["counter value"]
    again, _ = imported(exported(data)[0])
    assert len(list(TrackEvents(io.BytesIO(again)))) >= len(kinds)


@settings(max_examples=examples(60))
@given(st.lists(plausible | words | st.binary(max_size=9), max_size=30))
def test_any_bytes_are_converted_from_fxt_to_a_readable_trace(parts: list[bytes]) -> None:
    trace = FxtTrace()
    data, _ = imported(trace.data + b"".join(parts))
    read = TrackEvents(io.BytesIO(data))
    list(read)
    assert read.skipped == 0
