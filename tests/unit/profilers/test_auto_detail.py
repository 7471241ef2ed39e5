"""Auto detail in this process: what its hooks count, switch off and refuse."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stretto import _pyhooks
from stretto.profilers import totals
from stretto.profilers.functions import category
from tests.support.call_slices import recorded

CATEGORY = "python.functions"
HERE = __file__
THRESHOLD_NS = 50_000
"""Shorter calls are counted in their caller."""

with_events = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="auto detail needs CPython 3.12 or later"
)


@pytest.fixture(autouse=True)
def auto_detail(function_options: Callable[..., None]) -> Iterator[None]:
    function_options(auto_detail=True, include=[HERE])
    yield
    function_options()


def calls_str() -> str:
    return str(1)


def leaf() -> int:
    return 1


def many(count: int) -> None:
    for _ in range(count):
        calls_str()
        leaf()
    time.sleep(0.002)  # sleep: the duration that is recorded


def counted() -> dict[str, Any]:
    found = totals()
    assert found is not None
    return {name: calls for name, _, _, calls, *_ in found["functions"]}


@with_events
def test_calls_of_functions_that_stay_on_are_counted() -> None:
    with recorded(CATEGORY):
        many(50)
        calls = counted()
    assert (calls["many"], calls["calls_str"], calls["leaf"]) == (1, 50, None)


@with_events
def test_function_with_short_calls_is_switched_off_and_not_counted() -> None:
    with recorded(CATEGORY):
        many(2000)
        assert counted()["calls_str"] is None


@with_events
def test_short_calls_are_arguments_of_their_caller() -> None:
    with recorded(CATEGORY) as result:
        many(50)
    begin, *inner, end = result.events
    assert (begin.name, begin.location and begin.location[0]) == ("many", HERE)
    # On a busy machine some of the inner calls are long enough to be shown.
    short_calls = end.args["short_calls"]
    assert short_calls + len(inner) // 2 == 50
    assert 0 < end.args["short_calls_ns"] < short_calls * THRESHOLD_NS


@with_events
def test_exceptions_and_generators_end_their_slices() -> None:
    def generates() -> Iterator[int]:
        time.sleep(0.002)  # sleep: the duration that is recorded
        yield 1
        time.sleep(0.002)  # sleep: the duration that is recorded

    def fails() -> None:
        time.sleep(0.002)  # sleep: the duration that is recorded
        raise KeyError

    with recorded(CATEGORY) as result:
        for _ in generates():
            pass
        with pytest.raises(KeyError):
            fails()
    names = [name.rpartition(".")[2] for name, inner in result.calls() if not inner]
    assert names == ["generates", "generates", "fails"]


@with_events
def test_open_calls_end_with_the_recording() -> None:
    def still_open() -> Any:
        with recorded(CATEGORY) as result:
            inner_call(result)
        return result

    def inner_call(_: object) -> None:
        time.sleep(0.002)  # sleep: the duration that is recorded

    calls = still_open().calls()
    assert [name.rpartition(".")[2] for name, _ in calls] == ["inner_call"]


@with_events
def test_recursion_to_the_limit_works() -> None:
    def recursive(depth: int) -> int:
        return recursive(depth - 1) + 1 if depth else len(str(depth))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with recorded(CATEGORY):
            assert recursive(50_000) == 50_001
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the refusal of 3.11")
def test_python_without_events_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"needs CPython 3\.12 or later"):
        _pyhooks.start(category, auto_detail=True)


def test_totals_are_none_while_nothing_is_recorded() -> None:
    assert totals() is None
