"""Arguments whose methods raise, trace or change state do not affect the program."""

from __future__ import annotations

import contextlib
import gc
import signal
import weakref

import pytest

import stretto
from stretto import _native
from tests.support.recorded_events import record
from tests.support.shown_argument import CATEGORY, shown


class Raises:
    def __init__(self, error):
        self.error = error

    def __repr__(self):
        raise self.error


class RaisesStr(Raises):
    __str__ = Raises.__repr__
    __repr__ = object.__repr__


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), RecursionError(), SystemExit(3), GeneratorExit(), StopIteration(), OSError()],
)
def test_error_in_a_repr_is_recorded_and_counted(error):
    before = _native.argument_errors()
    assert shown(Raises(error)) == f"<{type(error).__name__} in repr>"
    assert shown([Raises(error)]) == [f"<{type(error).__name__} in repr>"]
    assert shown({RaisesStr(error): 1}) == {"?": 1}
    assert _native.argument_errors() == before + 18


def test_repr_that_returns_no_str_is_recorded_as_an_error():
    class Odd:
        def __repr__(self):
            return 5

    assert shown(Odd()) == "<TypeError in repr>"


def test_keyboard_interrupt_in_a_repr_reaches_the_program():
    class Interrupted:
        def __repr__(self):
            signal.raise_signal(signal.SIGINT)
            return "never"

    with record() as recorded:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            CATEGORY.instant("x", value=Interrupted())
            # The interrupt is raised at one of the next instructions; on CPython 3.15 at the next
            # jump back or start of a function.
            for _ in range(2):
                pass
        CATEGORY.instant("after")
    assert [event.name for event in recorded.events] == ["x", "after"]


def test_object_with_a_raising_dunder_index_is_recorded_by_its_repr():
    class Index:
        def __index__(self):
            raise ValueError

        def __repr__(self):
            return "index"

    assert shown(Index()) == "index"


def test_repr_can_record_events():
    class Traces:
        def __repr__(self):
            with CATEGORY.slice("inner", value=[1]):
                CATEGORY.instant("deep", value="x" * 1000)
            return "traced"

    with record() as recorded:
        CATEGORY.instant("outer", first="f" * 50, value=Traces(), last=[1, Traces()])
    assert [event.name for event in recorded.events] == [
        *["inner", "deep", ""] * 2,
        "outer",
    ]
    assert recorded.one("outer").args == {
        "first": "f" * 50,
        "value": "traced",
        "last": [1, "traced"],
    }


def test_repr_that_records_itself_does_not_break_later_events():
    class Deep:
        def __repr__(self):
            CATEGORY.instant("deep", value=self)
            return "done"

    with record() as recorded:
        CATEGORY.instant("outer", value=Deep())
        CATEGORY.instant("after", value=1)
    assert recorded.one("after").args == {"value": 1}


def test_repr_can_clear_the_containers_of_its_object():
    class Clears:
        def __init__(self, *containers):
            self.containers = containers

        def __repr__(self):
            for container in self.containers:
                container.clear()
            gc.collect()
            return "cleared"

    def fresh():
        return "".join(["f", "resh"]) * 10

    top, inner, values = {}, {}, []
    clears = Clears(top, inner, values)
    top.update({"a": clears, fresh(): [fresh()], "dict": inner, "list": values, "b": fresh()})
    inner.update(a=clears, b=[fresh()], c=fresh())
    values.extend([clears, [fresh()], fresh()])
    with record() as recorded:
        CATEGORY.instant("top", args=top)
        inner.update(a=clears, b=[fresh()], c=fresh())
        CATEGORY.instant("inner", inner=inner)
        values.extend([clears, [fresh()], fresh()])
        CATEGORY.instant("list", values=values)
    assert recorded.one("top").args == {
        "a": "cleared", "fresh" * 10: ["fresh" * 10], "dict": "{}", "list": "[]", "b": "fresh" * 10,
    }  # fmt: skip
    expected = {"a": "cleared", "b": ["fresh" * 10], "c": "fresh" * 10}
    assert recorded.one("inner").args == {"inner": expected}
    assert recorded.one("list").args == {"values": list(expected.values())}


def test_repr_can_end_the_session():
    with stretto.TracingSession(configured()) as session:

        class Ends:
            def __repr__(self):
                session.stop()
                return "ended"

        CATEGORY.instant("x", value=Ends())
        slice_ = CATEGORY.slice("y", value=Ends())
        with slice_:
            pass
        session.read()


def configured():
    from tests.support.recorded_events import config

    return config()


def test_repr_can_start_a_session():
    """The session that the repr starts records neither the begin nor the end of the slice."""

    class Starts:
        def __repr__(self):
            recordings.enter_context(record())
            return "started"

    with (
        contextlib.ExitStack() as recordings,
        record() as recorded,
        CATEGORY.slice("x", value=Starts()),
    ):
        pass
    assert recorded.kinds == "BE"


def test_events_are_correct_if_the_collector_runs_at_every_allocation():
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            CATEGORY.instant("collected", value=["x", {"y": 1}])

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with record() as recorded:
            for number in range(200):
                Cycle()
                with CATEGORY.slice("slice", number=number, values=[number, {"n": number}]):
                    CATEGORY.instant(f"fresh {number}", args={f"k{number}": (number,)})
    finally:
        gc.set_threshold(*threshold)
    events = [event for event in recorded.events if event.name != "collected"]
    assert len(events) == 600
    assert len(recorded.events) - len(events) > 150
    begins = [event for event in events if event.kind == 1]
    assert [event.args for event in begins] == [
        {"number": number, "values": [number, {"n": number}]} for number in range(200)
    ]


def test_signal_handler_can_record_slices_inside_of_events():
    hits = []

    def handler(_number, _frame):
        with CATEGORY.slice("signal", values=[1, 2]):
            hits.append(1)

    class Slow:
        def __repr__(self):
            # The repr takes long, so that few events are between two signals.
            return str(sum(range(5000)))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        with record() as recorded:
            number, first = 0, len(hits)
            while len(hits) < first + 50:
                number += 1
                with CATEGORY.slice("main", slow=Slow(), values=[number]):
                    CATEGORY.instant("inside", number=number)
            last = len(hits)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    names = [event.name for event in recorded.events if event.kind == 1]
    assert names.count("main") == number
    assert last - first <= names.count("signal") <= len(hits)
    depth = 0
    for event in recorded.events:
        depth += {1: 1, 2: -1}.get(event.kind, 0)
        assert depth >= 0
    assert depth == 0


def test_weakref_callback_of_a_cached_object_can_record_events():
    """The last reference to a code object may be in the cache of function names."""

    def make(number):
        namespace = {}
        exec(f"def function{number}(): pass", namespace)
        return namespace.pop(f"function{number}")

    dead = []
    with record() as recorded:
        references = []
        for number in range(300):
            function = make(number)

            def callback(_reference):
                dead.append(1)
                CATEGORY.instant("callback", value=[len(dead)])

            references.append(weakref.ref(function.__code__, callback))
            with CATEGORY._slice_for_code(function.__code__):
                pass
            del function
    assert len(dead) == 300
    assert [event.name for event in recorded.events if event.kind == 1] == [
        f"function{number}" for number in range(300)
    ]


def test_exception_being_handled_is_not_changed_by_recorded_events():
    class Traces:
        def __del__(self):
            CATEGORY.instant("del", value=Raises(ValueError()))

    def fails():
        keep = [Traces()]
        keep.append(keep.clear())  # The object is deleted while this expression is evaluated.
        try:
            raise KeyError("mine")
        finally:
            Traces()

    with record() as recorded:
        with pytest.raises(KeyError) as caught:
            fails()
        assert caught.value.args == ("mine",)
    shown = [event.args for event in recorded.events]
    assert shown == [{"value": "<ValueError in repr>"}] * 2


def test_events_keep_no_references_to_arguments():
    class Argument:
        pass

    with record():
        for _ in range(3):
            argument = Argument()
            gone = weakref.ref(argument)
            CATEGORY.instant("x", a=argument, b=[argument], args={"c": argument})
            del argument
            assert gone() is None
