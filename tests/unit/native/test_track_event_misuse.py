"""Invalid arguments of events raise only under `-X dev`; otherwise they are counted."""

from __future__ import annotations

import subprocess
import sys

import pytest

import stretto
from stretto import _native
from tests.support.recorded_events import (
    BEGIN,
    COUNTER,
    END,
    config,
    descriptors_of,
    events_of,
    record,
)

CATEGORY = stretto.Category("test.misuse")

BAD_OPTIONS = [
    *[("timestamp", value) for value in (-1, 2**63, 2**64, -(2**70), 1.5, "now")],
    *[("track", value) for value in (5, "no track", object())],
    *[("args", value) for value in (None, [1], "ab")],
    *[
        (flow, value)
        for flow in ("flow", "terminating_flow")
        for value in ("text", [None], [stretto.Flow(), "x"], object(), 1.5)
    ],
]
BAD_COUNTS = [
    lambda: CATEGORY.slice(),
    lambda: CATEGORY.slice("a", "b"),
    lambda: CATEGORY.instant(),
    lambda: CATEGORY.counter(),
    lambda: CATEGORY.counter("c"),
    lambda: CATEGORY.begin(),
    lambda: CATEGORY.end("x"),
    lambda: CATEGORY._slice_for_code("no code"),
    lambda: CATEGORY.log_message("name"),
    lambda: CATEGORY.log_message("name", b"no str", 4, "file", "function", 1),
    lambda: CATEGORY.log_message("name", "message", "4", "file", "function", 1),
]


@pytest.fixture(autouse=True)
def lenient():
    """Count invalid arguments instead of raising an error, as without `-X dev`."""
    before = _native.raise_on_event_misuse(False)
    yield
    _native.raise_on_event_misuse(before)


@pytest.fixture
def strict(lenient):
    """Raise an error for invalid arguments, as under `-X dev`."""
    _native.raise_on_event_misuse(True)


def left_out(event):
    return event.args.get("...")


def test_unit_that_is_no_str_is_omitted_and_counted():
    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.counter("unit of bytes", 1, unit=b"ms")
    assert _native.argument_errors() == before + 1
    assert recorded.event.value == 1


@pytest.mark.parametrize(("name", "value"), BAD_OPTIONS)
def test_invalid_option_is_omitted_and_named_in_the_event(name, value):
    wrong = {name: value}
    start = stretto.now()
    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.instant("x", n=1, **wrong)
        with CATEGORY.slice("x", n=1, **wrong):
            pass
        CATEGORY.begin("x", n=1, **wrong)
        CATEGORY.end(n=1, **wrong)
        CATEGORY.counter("x", 1, **wrong)
    assert _native.argument_errors() == before + 5
    assert recorded.kinds == "IBEBEC"
    instant, begin, end, *others = recorded.events
    marked = [instant, begin, *others]
    assert [left_out(event) for event in marked] == [f"[left out: {name}]"] * 5
    assert [event.args.get("n") for event in marked[:-1]] == [1] * 4
    assert end.args == {}
    assert all(start < event.timestamp < stretto.now() for event in recorded.events)
    assert {event.track for event in recorded.events[:-1]} == {stretto.thread_track().uuid}
    assert all(not event.flows and not event.terminating_flows for event in marked)


def test_all_invalid_options_are_named_in_one_annotation():
    with record() as recorded:
        CATEGORY.instant(
            "x", "y", track=1, flow=1.5, terminating_flow=1.5, timestamp="", args=None, n=1
        )
    assert recorded.event.name == "x"
    assert recorded.event.args == {
        "n": 1,
        "...": "[left out: track, flow, terminating_flow, timestamp, args, positional arguments]",
    }


def test_flow_iterator_with_an_invalid_element_is_omitted_and_counted():
    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.instant("x", flow=iter((stretto.Flow(), "text")), terminating_flow=[7], n=1)
    assert recorded.event.args == {"n": 1, "...": "[left out: flow]"}
    assert (recorded.event.flows, recorded.event.terminating_flows) == ([], [7])
    assert _native.argument_errors() == before + 1


def test_slice_with_an_invalid_option_names_the_option_at_each_entry():
    with record() as recorded:
        wrong = CATEGORY.slice("x", timestamp=1.5)
        for _ in range(3):
            with wrong:
                pass
    assert [left_out(event) for event in recorded.events if event.kind == BEGIN] == [
        "[left out: timestamp]"
    ] * 3


def test_event_contains_marks_for_truncation_and_invalid_options_together():
    arguments = {f"argument {number}": number for number in range(200)}
    with record() as recorded:
        CATEGORY.instant("x", timestamp=1.5, args=arguments)
    for mark in (b"[truncated, 72 more]", b"[left out: timestamp]"):
        assert recorded.trace.count(mark) == 1


def test_misuse_marks_are_not_recorded_if_debug_annotations_are_filtered():
    wanted = config()
    wanted.data_sources[0].config.track_event_config.filter_debug_annotations = True
    with stretto.TracingSession(wanted) as session:
        CATEGORY.instant("x", timestamp=1.5)
        session.stop()
        (event,) = events_of(session.read())
    assert (event.name, event.args) == ("x", {})


@pytest.mark.parametrize("value", ["5", None, [1], 1j, object()])
def test_counter_with_an_invalid_value_is_omitted_and_counted(value):
    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.counter("c", value)
        CATEGORY.counter("c", 1)
    assert [event.value for event in recorded.events] == [1]
    assert _native.argument_errors() == before + 1


@pytest.mark.parametrize("name", [5, None, b"c"])
def test_counter_name_that_is_no_str_is_converted_and_counted(name):
    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.counter(name, 1)
    assert (recorded.event.kind, recorded.event.value) == (COUNTER, 1)
    assert recorded.event.args == {}
    assert descriptors_of(recorded.trace)[recorded.event.track].name == str(name)
    assert _native.argument_errors() == before + 1


class Unnameable:
    def __str__(self):
        raise ZeroDivisionError


class Unhashable(str):
    __slots__ = ()

    def __hash__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("name", [Unnameable(), Unhashable("c")])
def test_counter_whose_name_raises_is_omitted_and_counted(name):
    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.counter(name, 1)
    assert recorded.events == []
    assert _native.argument_errors() > before


def test_events_with_a_wrong_number_of_arguments_are_recorded_with_a_misuse_mark():
    before = _native.argument_errors()
    with record() as recorded:
        CATEGORY.begin()
        with CATEGORY.slice(), CATEGORY.slice("a", "b"), CATEGORY._slice_for_code(5):
            CATEGORY.instant("i", "more", n=1)
            CATEGORY.counter("without a value")
            CATEGORY.counter("c", 1, 2)
        CATEGORY.end("x")
    assert _native.argument_errors() == before + 8
    assert recorded.kinds == "BBBBICEEEE"
    assert [event.name for event in recorded.events[:5]] == ["", "", "a", "", "i"]
    marked = [event for event in recorded.events if left_out(event)]
    assert {left_out(event) for event in marked} == {"[left out: positional arguments]"}
    assert [event.kind for event in marked] == [BEGIN] * 4 + [3, COUNTER, END]


def test_misuse_is_not_counted_without_a_session():
    before = _native.argument_errors()
    for call in BAD_COUNTS:
        call()
    for name, value in BAD_OPTIONS:
        CATEGORY.instant("x", **{name: value})
    assert _native.argument_errors() == before


@pytest.mark.parametrize(("name", "value"), BAD_OPTIONS)
def test_invalid_option_raises_in_dev_mode(strict, name, value):
    error = ValueError if name == "timestamp" else TypeError
    with record() as recorded:
        for call in CATEGORY.instant, CATEGORY.slice, CATEGORY.begin:
            with pytest.raises(error, match=f"{name} must be an? "):
                call("x", **{name: value})
    assert recorded.events == []


@pytest.mark.parametrize("call", BAD_COUNTS)
def test_wrong_number_of_arguments_raises_in_dev_mode(strict, call):
    with record() as recorded, pytest.raises(TypeError, match=r"takes (\d positional|a )"):
        call()
    assert recorded.events == []


@pytest.mark.parametrize("value", ["5", None, [1], 1j, object()])
def test_counter_with_an_invalid_value_raises_in_dev_mode(strict, value):
    with record() as recorded, pytest.raises(TypeError, match="must be a number"):
        CATEGORY.counter("c", value)
    assert recorded.events == []


@pytest.mark.parametrize("name", [5, None, b"c"])
def test_counter_with_an_invalid_name_raises_in_dev_mode(strict, name):
    with record() as recorded, pytest.raises(TypeError, match="must be a str"):
        CATEGORY.counter(name, 1)
    assert recorded.events == []


def test_valid_arguments_raise_nothing_in_dev_mode(strict):
    with record() as recorded:
        CATEGORY.instant("x", flow=iter(()), terminating_flow=(1, stretto.Flow()), timestamp=5)
        CATEGORY.instant("x", flow={1, 2}, track=stretto.Track("t"), args={1: 2})
        CATEGORY.counter("c", True)
    assert all(left_out(event) is None for event in recorded.events)


@pytest.mark.parametrize(("flags", "raises"), [([], False), (["-X", "dev"], True)])
def test_misuse_raises_only_in_dev_mode(flags, raises):
    code = "from stretto import _native; print(_native.raise_on_event_misuse(False))"
    run = [sys.executable, *flags, "-c", code]
    assert subprocess.check_output(run, text=True).strip() == str(raises)
