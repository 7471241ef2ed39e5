"""Timestamps, flows, tracks, counters and names of events."""

from __future__ import annotations

import os
import pickle
import threading
from decimal import Decimal
from fractions import Fraction

import pytest

import stretto
from stretto import _native
from tests.support.recorded_events import COUNTER, descriptors_of, record

CATEGORY = stretto.Category("test.events")


@pytest.mark.parametrize("offset", [-(10**9), 10**9, -1, 0])
def test_explicit_timestamps_are_recorded(offset):
    given = stretto.now() + offset
    with record() as recorded:
        CATEGORY.instant("before")
        CATEGORY.instant("given", timestamp=given)
        CATEGORY.instant("after", n=1)
        with CATEGORY.slice("slice", timestamp=given):
            pass
        CATEGORY.begin("begin", timestamp=given)
        CATEGORY.end(timestamp=given + 5)
        CATEGORY.counter("counter", 1, timestamp=given)
    times = {event.name: event.timestamp for event in recorded.events if event.name}
    assert times["given"] == times["slice"] == times["begin"] == given
    assert times["before"] < times["after"] < stretto.now()
    events = recorded.events
    assert events[-2].timestamp == given + 5
    assert (events[-1].kind, events[-1].timestamp) == (COUNTER, given)


@pytest.mark.parametrize("timestamp", [0, 1, 2**63 - 1])
def test_smallest_and_largest_timestamps_are_recorded(timestamp):
    with record() as recorded:
        CATEGORY.instant("x", timestamp=timestamp)
    assert recorded.event.timestamp == timestamp


def test_event_options_that_are_none_are_ignored():
    with record() as recorded:
        CATEGORY.instant("x", timestamp=None, track=None, flow=None, terminating_flow=None)
    assert recorded.event.args == {}
    assert recorded.event.flows == []


def test_flows_can_be_objects_ints_or_iterables():
    flow, other = stretto.Flow(), stretto.Flow(5)
    assert flow.id not in (0, other.id)
    with record() as recorded:
        CATEGORY.instant("one", flow=flow)
        CATEGORY.instant("int", flow=2**64 - 1)
        CATEGORY.instant("list", flow=[flow, 7])
        CATEGORY.instant("iterator", flow=iter((flow, other)), terminating_flow=other)
        with CATEGORY.slice("slice", flow=flow, terminating_flow=[flow]):
            pass
    found = [(event.flows, event.terminating_flows) for event in recorded.events]
    assert found == [
        ([flow.id], []),
        ([2**64 - 1], []),
        ([flow.id, 7], []),
        ([flow.id, 5], [5]),
        ([flow.id], [flow.id]),
        ([], []),
    ]


def test_flow_ids_are_unique():
    assert len({stretto.Flow().id for _ in range(10_000)}) == 10_000


def test_flow_can_be_pickled():
    flow = stretto.Flow()
    assert pickle.loads(pickle.dumps(flow)).id == flow.id
    with pytest.raises(OverflowError):
        stretto.Flow(-1)
    with pytest.raises(TypeError):
        stretto.Flow("x")


def test_tracks_contain_the_uuid_of_their_parent():
    track = None
    tracks = []
    for depth in range(5):
        track = stretto.Track(f"depth {depth}", parent=track)
        tracks.append(track)
    with record() as recorded:
        CATEGORY.instant("deep", track=track)
    descriptors = descriptors_of(recorded.trace)
    assert recorded.event.track == track.uuid
    parent = stretto.process_track().uuid
    for depth, each in enumerate(tracks):
        found = descriptors[each.uuid]
        assert (found.name, found.parent_uuid) == (f"depth {depth}", parent)
        parent = each.uuid
    assert descriptors[stretto.process_track().uuid].process.pid == os.getpid()


def test_track_uuid_depends_on_name_parent_and_id():
    thread = stretto.thread_track()
    uuids = {
        stretto.Track("a").uuid,
        stretto.Track("b").uuid,
        stretto.Track("a", id=1).uuid,
        stretto.Track("a", parent=thread).uuid,
        stretto.Track("a", parent=stretto.Track("a")).uuid,
    }
    assert len(uuids) == 5
    assert (
        stretto.Track("a", parent=thread, id=3).uuid == stretto.Track("a", parent=thread, id=3).uuid
    )


@pytest.mark.parametrize("arguments", [{"parent": "x"}, {"id": "x"}, {"unknown": 1}])
def test_invalid_track_arguments_are_refused(arguments):
    with pytest.raises(TypeError):
        stretto.Track("x", **arguments)
    with pytest.raises(TypeError):
        stretto.Track(5)


def test_events_on_two_thousand_tracks_have_their_descriptors():
    tracks = [stretto.Track(f"track {number}") for number in range(2000)]
    with record() as recorded:
        for number, track in enumerate(tracks):
            CATEGORY.instant("x", track=track, number=number)
    assert [event.track for event in recorded.events] == [track.uuid for track in tracks]
    descriptors = descriptors_of(recorded.trace)
    names = [descriptors[event.track].name for event in recorded.events]
    assert names == [track.name for track in tracks]


def test_track_cannot_be_pickled():
    """A track belongs to this process; another process has to create its own."""
    with pytest.raises(TypeError):
        pickle.dumps(stretto.Track("x"))


def test_unusual_track_names_are_recorded():
    with record() as recorded:
        for name in ("", "\ud800", "x" * 10_000, "nul\0"):
            CATEGORY.instant("x", track=stretto.Track(name))
    descriptors = descriptors_of(recorded.trace)
    names = [descriptors[event.track].name for event in recorded.events]
    assert names == ["", "\\ud800", "x" * 10_000, "nul\0"]


def test_track_of_another_thread_can_be_used():
    tracks = []

    def work():
        tracks.append(stretto.thread_track())

    thread = threading.Thread(target=work, name="other thread")
    thread.start()
    thread.join()
    with record() as recorded:
        CATEGORY.instant("for the other", track=tracks[0])
        CATEGORY.instant("below", track=stretto.Track("child", parent=tracks[0]))
    descriptors = descriptors_of(recorded.trace)
    assert tracks[0].uuid != stretto.thread_track().uuid
    assert descriptors[recorded.events[0].track].thread.thread_name == "other thread"
    assert descriptors[recorded.events[1].track].parent_uuid == tracks[0].uuid


def test_track_of_the_calling_thread_is_the_default_track():
    with record() as recorded:
        CATEGORY.instant("given", track=stretto.thread_track())
        CATEGORY.instant("default")
        CATEGORY.instant("process", track=stretto.process_track())
    given, default, process = recorded.events
    assert given.track == default.track != process.track
    assert process.track == stretto.process_track().uuid


class Float:
    def __float__(self):
        return 2.5


class NumpyLike:
    """A number like numpy.int64, with both __index__ and __float__."""

    def __index__(self):
        return 2**60 + 1

    def __float__(self):
        return float(2**60)


class Number(int):
    def __index__(self):
        raise RuntimeError

    __float__ = __int__ = __index__


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (-5, -5),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, float(2**63)),
        (10**400, float("inf")),
        (-(10**400), float("-inf")),
        (True, 1),
        (0.0, 0.0),
        (-1.0, -1.0),
        (float("inf"), float("inf")),
        (Decimal("1.25"), 1.25),
        (Fraction(1, 4), 0.25),
        (Float(), 2.5),
        (NumpyLike(), 2**60 + 1),
        (Number(7), 7),
    ],
)
def test_counter_values_are_recorded_as_int_or_float(value, expected):
    with record() as recorded:
        CATEGORY.counter("c", value)
    assert recorded.event.kind == COUNTER
    assert recorded.event.value == expected
    assert type(recorded.event.value) is type(expected)


def test_counter_whose_value_raises_is_omitted_and_counted():
    class Raises:
        def __float__(self):
            raise ZeroDivisionError

    class RaisesIndex(Raises):
        def __index__(self):
            raise ZeroDivisionError

    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.counter("c", Raises())
        CATEGORY.counter("c", RaisesIndex())
        CATEGORY.counter("c", 1)
    assert recorded.event.value == 1
    assert _native.argument_errors() == before + 2


def test_conversion_of_a_counter_value_may_record_events():
    class Traces:
        def __float__(self):
            CATEGORY.counter("inner", 1)
            CATEGORY.instant("event", values=[1])
            return 2.0

    with record() as recorded:
        CATEGORY.counter("outer", Traces())
    assert [event.value for event in recorded.events] == [1, None, 2.0]


def test_parent_of_a_counter_track_is_the_process_or_a_given_track():
    parent = stretto.Track("parent")
    with record() as recorded:
        CATEGORY.counter("c", 1)
        CATEGORY.counter("c", 2)
        CATEGORY.counter("c", 3, track=parent)
        CATEGORY.counter("\ud800", 4)
    below_process, again, below_parent, odd = (event.track for event in recorded.events)
    assert below_process == again != below_parent
    descriptors = descriptors_of(recorded.trace)
    assert descriptors[below_process].parent_uuid == stretto.process_track().uuid
    assert descriptors[below_parent].parent_uuid == parent.uuid
    assert descriptors[below_process].has("counter")
    assert descriptors[odd].name == "\\ud800"


def test_unit_of_a_counter_is_that_of_its_first_value():
    parent = stretto.Track("parent")
    unit = "requests/s" * 20
    with record() as recorded:
        for value in (1, 2):
            CATEGORY.counter("counter with a unit", value, unit=unit)
        CATEGORY.counter("counter with a unit", 3, unit="other")
        CATEGORY.counter("counter with a unit", 4)
        CATEGORY.counter("below", 5, track=parent, unit="bytes")
        CATEGORY.counter("without", 6, unit=None)
    assert [event.value for event in recorded.events] == [1, 2, 3, 4, 5, 6]
    assert all(event.args == {} for event in recorded.events)
    descriptors = descriptors_of(recorded.trace)
    tracks = [descriptors[event.track] for event in recorded.events]
    names = [track.counter.unit_name for track in tracks]
    assert names == [unit] * 4 + ["bytes", ""]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", ""),
        ("x" * 256, "x" * 256),
        ("x" * 257, "x" * 257),
        ("x" * 5000, "x" * 4096),
        ("€" * 2000, "€" * 1365),
        ("\ud800", "\\ud800"),
        ("nul\0name", "nul\0name"),
        (5, "5"),
        (None, "None"),
        (b"bytes", "b'bytes'"),
    ],
)
def test_event_names_are_recorded_as_strings(name, expected):
    with record() as recorded:
        for _ in range(2):
            CATEGORY.instant(name)
            CATEGORY.instant(name, n=1)
            CATEGORY.begin(name)
            with CATEGORY.slice(name):
                pass
    names = [event.name for event in recorded.events if event.kind != 2]
    assert names == [expected] * 8


def test_event_name_whose_str_raises_is_empty():
    class Raises:
        def __str__(self):
            raise ValueError

    with record() as recorded:
        CATEGORY.instant(Raises())
    assert recorded.event.name == ""


def test_functions_of_the_module_stretto_use_the_category_python():
    with record() as recorded, stretto.slice("s"):
        stretto.instant("i")
        stretto.counter("c", 1)
        stretto.begin("b")
        stretto.end()
    assert recorded.kinds == "BICBEE"
    assert {event.category for event in recorded.events if event.name} == {"python"}
