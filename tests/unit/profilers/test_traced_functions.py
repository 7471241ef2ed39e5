"""A call of a @traced function is recorded as one slice during function tracing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator

import pytest

import stretto
from tests.support.call_slices import BEGIN, Call, Event, nest, recorded

CATEGORY = stretto.Category("test.traced_functions")
FUNCTIONS = "python.functions"


@pytest.fixture(autouse=True)
def options(function_options: Callable[..., None]) -> Callable[..., None]:
    return function_options


def helper() -> None:
    pass


@CATEGORY.traced
def outer() -> None:
    helper()
    inner()


@CATEGORY.traced
def inner() -> None:
    helper()


@CATEGORY.traced
def countdown(n: int) -> int:
    return countdown(n - 1) if n else 0


@CATEGORY.traced
def numbers() -> Generator[int, None, None]:
    helper()
    yield 1
    helper()
    yield 2


@CATEGORY.traced
class Shape:
    def __init__(self) -> None:
        helper()

    @property
    def area(self) -> int:
        return 4

    @staticmethod
    def kinds() -> None:
        helper()


@CATEGORY.traced
def fails() -> None:
    helper()
    raise ValueError


def events_of(program: Callable[[], object], *categories: str) -> list[Event]:
    with recorded(*(categories or (FUNCTIONS, CATEGORY.name))) as result:
        program()
    return result.events


def calls_of(program: Callable[[], object]) -> list[Call]:
    """Run the program and return its recorded calls."""
    ((_, calls),) = nest(events_of(program))
    return calls


def categories_of(events: list[Event], name: str) -> list[str]:
    return [event.categories[0] for event in events if (event.type, event.name) == (BEGIN, name)]


def test_traced_call_is_one_slice_of_the_category_of_its_decorator() -> None:
    def program() -> None:
        outer()

    events = events_of(program)
    ((_, calls),) = nest(events)
    assert calls == [("outer", [("helper", []), ("inner", [("helper", [])])])]
    assert categories_of(events, "outer") == categories_of(events, "inner") == [CATEGORY.name]
    assert categories_of(events, "helper") == 2 * [FUNCTIONS]


def test_recursive_traced_function_is_one_slice_per_call() -> None:
    def program() -> None:
        countdown(3)

    nested: list[Call] = []
    for _ in range(4):
        nested = [("countdown", nested)]
    assert calls_of(program) == nested


def test_each_step_of_a_traced_generator_is_one_slice() -> None:
    def program() -> None:
        assert list(numbers()) == [1, 2]

    inner: list[Call] = [("helper", [])]
    assert calls_of(program) == [("numbers", inner), ("numbers", inner), ("numbers", [])]


def test_each_method_of_a_traced_class_is_one_slice() -> None:
    def program() -> None:
        assert Shape().area == 4
        Shape.kinds()

    inner: list[Call] = [("helper", [])]
    assert calls_of(program) == [
        ("Shape.__init__", inner), ("Shape.area", []), ("Shape.kinds", inner),
    ]  # fmt: skip


def test_traced_call_that_raises_is_one_slice() -> None:
    def program() -> None:
        with pytest.raises(ValueError):  # noqa: PT011  # raised by `fails`
            fails()
        helper()

    calls = [call for call in calls_of(program) if call[0] in ("fails", "helper")]
    assert calls == [("fails", [("helper", [])]), ("helper", [])]


def test_call_that_the_decorator_does_not_record_is_recorded_by_function_tracing() -> None:
    def program() -> None:
        outer.__wrapped__()  # type: ignore[attr-defined]

    assert categories_of(events_of(program), "outer") == [FUNCTIONS]
    assert categories_of(events_of(outer, FUNCTIONS), "outer") == [FUNCTIONS]
    assert categories_of(events_of(outer, CATEGORY.name), "outer") == [CATEGORY.name]


def test_function_tracing_records_a_call_after_a_slice_for_the_same_code() -> None:
    function = outer.__wrapped__  # type: ignore[attr-defined]

    def program() -> None:
        with CATEGORY._slice_for_code(function.__code__):
            pass
        function()

    events = events_of(program)
    assert categories_of(events, "outer") == [CATEGORY.name, FUNCTIONS]


def test_function_called_after_an_omitted_deep_call_is_recorded(
    options: Callable[..., None],
) -> None:
    function = outer.__wrapped__  # type: ignore[attr-defined]
    options(max_depth=1)

    def program() -> None:
        outer()

    events = events_of(program) + events_of(function)
    assert categories_of(events, "outer") == [CATEGORY.name, FUNCTIONS]


def test_traced_call_with_a_minimum_duration_is_one_slice(options: Callable[..., None]) -> None:
    options(min_duration_ns=1)

    def program() -> None:
        outer()
        outer()

    assert categories_of(events_of(program), "outer") == 2 * [CATEGORY.name]


def test_session_without_the_category_of_the_decorator_records_a_function_slice() -> None:
    with recorded(FUNCTIONS) as functions, recorded(FUNCTIONS, CATEGORY.name) as both:
        outer()
    assert categories_of(functions.events, "outer") == [FUNCTIONS]
    assert categories_of(both.events, "outer") == [CATEGORY.name]


@pytest.mark.parametrize("duration", [0, 1])
def test_each_session_gets_the_slice_of_its_category(
    options: Callable[..., None], duration: int
) -> None:
    options(min_duration_ns=duration)
    with recorded(CATEGORY.name) as traced, recorded(FUNCTIONS) as functions:
        outer()
    assert categories_of(traced.events, "outer") == [CATEGORY.name]
    assert categories_of(functions.events, "outer") == [FUNCTIONS]


def test_traced_function_in_a_task_is_one_slice() -> None:
    async def main() -> None:
        inner()

    def program() -> None:
        asyncio.run(main())

    assert categories_of(events_of(program), "inner") == [CATEGORY.name]


def test_traced_coroutine_is_a_slice_of_its_task_with_steps_on_the_thread() -> None:
    @CATEGORY.traced
    async def work() -> None:
        await asyncio.sleep(0)

    def program() -> None:
        asyncio.run(work())

    events = [event for event in events_of(program) if event.name.endswith("work")]
    whole, *steps = events
    assert (whole.categories, whole.track != 0) == ([CATEGORY.name], True)
    assert {(step.categories[0], step.track) for step in steps} == {(FUNCTIONS, 0)}
    assert len(steps) == 2
