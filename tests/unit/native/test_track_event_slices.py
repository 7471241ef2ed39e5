"""Slices: each END is on the track and in the sessions of its BEGIN."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import stretto
from tests.support.recorded_events import BEGIN, END, config, events_of, record

CATEGORY = stretto.Category("test.slices")


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


def nesting(events):
    """Return (name, depth) of all slices in order; an unmatched END is an error."""
    open_slices, found = {}, []
    for event in sorted(events, key=lambda event: event.timestamp):
        stack = open_slices.setdefault(event.track, [])
        if event.kind == BEGIN:
            found.append((event.name, len(stack)))
            stack.append(event.name)
        elif event.kind == END:
            stack.pop()
    assert not any(open_slices.values()), "a slice was left open"
    return found


def test_slice_that_is_never_entered_is_not_recorded():
    with record() as recorded:
        CATEGORY.slice("never", number=1)
        with CATEGORY.slice("once"):
            pass
    assert nesting(recorded.events) == [("once", 0)]


def test_two_slices_created_before_either_is_entered_keep_their_arguments():
    with record() as recorded:
        first, second = CATEGORY.slice("first", n=1), CATEGORY.slice("second", n=2)
        with second, first:
            pass
    assert nesting(recorded.events) == [("second", 0), ("first", 1)]
    assert recorded.one("first").args == {"n": 1}
    assert recorded.one("second").args == {"n": 2}


def test_slice_can_be_entered_repeatedly():
    with record() as recorded:
        again = CATEGORY.slice("again", n=[1])
        for _ in range(3):
            with again:
                pass
    assert nesting(recorded.events) == [("again", 0)] * 3
    assert [event.args for event in recorded.events if event.kind == BEGIN] == [{"n": [1]}] * 3


def test_slice_can_be_entered_within_itself():
    with record() as recorded:
        deep = CATEGORY.slice("deep")
        with deep, deep, deep, deep:
            CATEGORY.instant("inside")
    assert nesting(recorded.events) == [("deep", depth) for depth in range(4)]


def test_slice_can_be_entered_in_the_repr_of_its_argument():
    class Enters:
        depth = 0

        def __repr__(self):
            if Enters.depth < 5:
                Enters.depth += 1
                with slice_:
                    pass
            return "done"

    with record() as recorded:
        slice_ = CATEGORY.slice("reenters", argument=Enters())
        with slice_:
            pass
    assert recorded.kinds.count("B") == recorded.kinds.count("E") == 6


def test_exit_without_enter_records_nothing():
    with record() as recorded:
        slice_ = CATEGORY.slice("x")
        slice_.__exit__(None, None, None)
        slice_.__exit__()
        with CATEGORY.slice("outer"):
            slice_.__exit__(None, None, None)
            CATEGORY.instant("inside")
    assert recorded.kinds == "BIE"


def test_second_exit_of_a_slice_records_nothing():
    with record() as recorded, CATEGORY.slice("outer"):
        with CATEGORY.slice("inner") as inner:
            inner.__exit__(None, None, None)
        CATEGORY.instant("inside")
    assert recorded.kinds == "BBEIE"


def test_slice_exited_on_another_thread_ends_on_the_track_of_its_begin():
    """The END is written on the track of the BEGIN, not on the track of the exiting thread."""
    with record() as recorded:
        slice_ = CATEGORY.slice("handed over")
        slice_.__enter__()

        def finish():
            with CATEGORY.slice("there"):
                slice_.__exit__(None, None, None)

        in_thread(finish)
    assert sorted(nesting(recorded.events)) == [("handed over", 0), ("there", 0)]


def test_slice_exited_after_its_session_records_no_end():
    with record() as first:
        slice_ = CATEGORY.slice("long")
        slice_.__enter__()
    with record() as second, CATEGORY.slice("outer"):
        slice_.__exit__(None, None, None)
        CATEGORY.instant("inside")
    slice_.__exit__(None, None, None)
    assert first.kinds == "B"
    assert second.kinds == "BIE"


def test_session_started_inside_of_a_slice_records_no_end_of_the_slice():
    with record() as outer, CATEGORY.slice("slice"):
        with record() as inner, CATEGORY.slice("outer"):
            pass
        with record() as late:
            pass
    assert outer.kinds == "BBEE"
    assert inner.kinds == "BE"
    assert late.kinds == ""


def test_slice_entered_before_a_session_records_no_end_in_the_session():
    slice_ = CATEGORY.slice("off")
    slice_.__enter__()
    with record() as recorded, CATEGORY.slice("outer"):
        slice_.__exit__(None, None, None)
        CATEGORY.instant("inside")
    assert recorded.kinds == "BIE"


def test_slice_created_without_a_session_records_nothing_in_a_later_session():
    """Without a session, `slice()` returns the shared empty slice."""
    slice_ = CATEGORY.slice("made before")
    with record() as recorded, slice_:
        pass
    assert recorded.kinds == ""


def test_slice_created_in_one_session_is_recorded_in_the_next_session():
    with record():
        slice_ = CATEGORY.slice("kept", n=1)
    with record() as recorded, slice_:
        pass
    assert nesting(recorded.events) == [("kept", 0)]
    with slice_:
        pass


def test_exceptions_propagate_and_end_the_slice():
    with record() as recorded:
        with pytest.raises(KeyError), CATEGORY.slice("outer"), CATEGORY.slice("inner"):
            raise KeyError
        CATEGORY.instant("after")
    assert recorded.kinds == "BBEEI"
    assert [event.args for event in recorded.events] == [
        {}, {}, {"exception": "KeyError"}, {"exception": "KeyError"}, {},
    ]  # fmt: skip


def test_enter_returns_the_slice_and_exit_returns_none():
    with record():
        slice_ = CATEGORY.slice("x")
        assert slice_.__enter__() is slice_
        assert slice_.__exit__(ValueError, ValueError(), None) is None


def test_slice_of_a_suspended_generator_ends_when_the_generator_is_closed():
    def work(name):
        with CATEGORY.slice(name):
            yield

    with record() as recorded:
        first, second = work("first"), work("second")
        next(first), next(second)
        second.close()
        first.close()
    assert nesting(recorded.events) == [("first", 0), ("second", 1)]


def test_slice_objects_are_recycled_only_after_deletion():
    with record() as recorded:
        kept = [CATEGORY.slice("kept", n=number) for number in range(200)]
        assert len({id(slice_) for slice_ in kept}) == 200
        for slice_ in kept:
            with slice_:
                pass
        del kept, slice_
        fresh = [CATEGORY.slice("fresh") for _ in range(200)]
        for slice_ in fresh:
            with slice_:
                pass
    begins = [event for event in recorded.events if event.kind == BEGIN]
    assert [event.args.get("n") for event in begins] == [*range(200), *[None] * 200]


def test_slice_keeps_no_references_to_arguments_after_recording():
    class Argument:
        pass

    with record():
        argument = Argument()
        gone = weakref.ref(argument)
        with CATEGORY.slice("holds", argument=argument, args={"more": argument}):
            pass
        del argument
        assert gone() is None


def test_destructor_of_an_argument_can_record_slices():
    class Argument:
        def __del__(self):
            with CATEGORY.slice("in del"):
                pass

    with record() as recorded:
        for _ in range(100):
            slice_ = CATEGORY.slice("outer", argument=Argument())
            with slice_:
                pass
            del slice_
    assert [name for name, _ in nesting(recorded.events)].count("in del") == 100


def test_repeated_slices_leak_no_objects():
    with record():
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(1000):
            with CATEGORY.slice("x", a=1):
                pass
        gc.collect()
        assert len(gc.get_objects()) - before < 100


def test_begin_and_end_record_nested_slices():
    with record() as recorded:
        CATEGORY.begin("outer", n=1)
        CATEGORY.begin("inner")
        CATEGORY.end(result=2)
        CATEGORY.end()
    assert nesting(recorded.events) == [("outer", 0), ("inner", 1)]
    assert [event.args for event in recorded.events] == [{"n": 1}, {}, {"result": 2}, {}]


def test_end_without_begin_records_nothing():
    with record() as recorded, CATEGORY.slice("outer"):
        CATEGORY.end()
        CATEGORY.begin("inner")
        CATEGORY.end()
        CATEGORY.end()
        CATEGORY.instant("inside")
    assert recorded.kinds == "BBEIE"


def test_end_of_an_event_begun_before_the_session_is_not_recorded():
    CATEGORY.begin("off")
    with record() as outer:
        CATEGORY.begin("on")
        with record() as recorded, CATEGORY.slice("slice"):
            CATEGORY.end()
            CATEGORY.end()
            CATEGORY.instant("inside")
    assert recorded.kinds == "BIE"
    assert outer.kinds == "BBEIE"


def test_slices_open_when_a_session_ends_have_no_end_in_the_next_session():
    for _ in range(3):
        with record() as recorded:
            for _ in range(70):
                CATEGORY.begin("open for ever")
        assert recorded.kinds == "B" * 70
    with record() as recorded, CATEGORY.slice("outer"):
        CATEGORY.end()
        CATEGORY.instant("inside")
    assert recorded.kinds == "BIE"


def test_begin_and_end_are_recorded_deeper_than_64_levels():
    with record() as recorded:
        for _ in range(100):
            CATEGORY.begin("deep")
        for _ in range(110):
            CATEGORY.end()
    assert recorded.kinds == "B" * 100 + "E" * 100


def test_begin_and_end_on_a_track_match_across_threads():
    track = stretto.Track("shared")
    with record() as recorded:
        CATEGORY.begin("job", track=track)
        in_thread(lambda: CATEGORY.begin("step", track=stretto.Track("shared")))
        in_thread(lambda: CATEGORY.end(track=track))
        CATEGORY.end(track=stretto.Track("shared"))
        CATEGORY.end(track=track)
    assert nesting(recorded.events) == [("job", 0), ("step", 1)]
    assert {event.track for event in recorded.events} == {track.uuid}


def test_end_on_one_track_does_not_end_slices_of_another_track():
    first, second = stretto.Track("first"), stretto.Track("first", id=2)
    with record() as recorded, CATEGORY.slice("thread"):
        CATEGORY.begin("a", track=first)
        CATEGORY.end(track=second)
        CATEGORY.end()
        CATEGORY.end(track=first)
    assert sorted(nesting(recorded.events)) == [("a", 0), ("thread", 0)]


def test_slice_with_a_track_ends_on_that_track_if_another_thread_exits_the_slice():
    track = stretto.Track("elsewhere")
    with record() as recorded, CATEGORY.slice("here"):
        slice_ = CATEGORY.slice("there", track=track)
        slice_.__enter__()
        in_thread(slice_.__exit__, None, None, None)
    assert sorted(nesting(recorded.events)) == [("here", 0), ("there", 0)]


def test_session_gets_only_events_of_its_categories():
    other = stretto.Category("test.slices.other")
    with record(enabled=["test.slices"], disabled=["*"]) as one, record() as both:
        CATEGORY.begin("a")
        other.begin("b")
        other.end()
        CATEGORY.end()
    assert one.kinds == "BE"
    assert both.kinds == "BBEE"


def test_filtered_debug_annotations_of_slices_are_not_recorded():
    made = config()
    made.data_sources[0].config.track_event_config.filter_debug_annotations = True
    with stretto.TracingSession(made) as session, record() as unfiltered:
        for _ in range(3):
            with CATEGORY.slice("secret", password="1234", args={"more": [1] * 10}):
                CATEGORY.instant("plain", password="1234")
        session.stop()
        trace = session.read()
    assert [event.args for event in events_of(trace)] == [{}] * 9
    assert b"1234" not in trace
    assert b"1234" in unfiltered.trace
