"""The caller that made a function's time grow is found."""

from __future__ import annotations

from math import inf

import pytest

pytest.importorskip("stretto._native")

from stretto.analysis.changed_callers import ChangedCaller, changed_caller
from stretto.analysis.trace_diff import Calls

Trace = dict[tuple[str, str], Calls]


def key(name: str) -> tuple[str, str]:
    return ("functions", name)


def trace_of(*calls: tuple[str, str, int, int]) -> Trace:
    """Make a trace's calls from (caller, callee, number, time of each); "" calls the outermost.

    The time of a callee with calls of its own contains them, as each caller is given first.
    """
    trace: Trace = {}
    for caller, callee, number, time in calls:
        found = trace.setdefault(key(callee), Calls())
        edge = found.callers.setdefault(key(caller) if caller else None, Calls())
        for _ in range(number):
            found.add(time, time)
            edge.add(time, time)
    return trace


def test_own_growth_has_no_caller() -> None:
    before = trace_of(("", "main", 1, 9), ("main", "leaf", 10, 5))
    after = trace_of(("", "main", 1, 9), ("main", "leaf", 10, 9))
    assert changed_caller(key("leaf"), [before], [after]) is None


def test_growth_of_all_callers_calls_is_the_functions_own() -> None:
    before = trace_of(
        ("a", "leaf", 90, 10), ("b", "leaf", 10, 10), ("", "a", 1, 900), ("", "b", 1, 100)
    )
    after = trace_of(
        ("a", "leaf", 90, 15), ("b", "leaf", 10, 15), ("", "a", 1, 1350), ("", "b", 1, 150)
    )
    assert changed_caller(key("leaf"), [before], [after]) is None


def test_caller_whose_calls_take_longer_is_found() -> None:
    before = trace_of(
        ("", "a", 1, 50), ("", "b", 1, 50), ("a", "leaf", 10, 5), ("b", "leaf", 10, 5)
    )
    after = trace_of(("", "a", 1, 90), ("", "b", 1, 50), ("a", "leaf", 10, 9), ("b", "leaf", 10, 5))
    expected = ChangedCaller(key("a"), key("leaf"), 0)
    assert changed_caller(key("leaf"), [before], [after]) == expected


@pytest.mark.parametrize("number", [20, 30])
def test_search_goes_up_to_the_caller_that_makes_more_calls(number: int) -> None:
    before = trace_of(("", "main", 1, 99), ("main", "parse", 10, 9), ("parse", "leaf", 10, 8))
    after = trace_of(
        ("", "main", 1, 999), ("main", "parse", number, 9), ("parse", "leaf", number, 8)
    )
    expected = ChangedCaller(key("main"), key("parse"), number / 10)
    assert changed_caller(key("leaf"), [before], [after]) == expected
    assert changed_caller(key("leaf"), [before] * 3, [after] * 2) == expected


def test_new_caller_is_found_by_who_calls_it() -> None:
    before = trace_of(("", "main", 1, 99), ("main", "leaf", 10, 8))
    after = trace_of(
        ("", "main", 1, 300), ("main", "leaf", 10, 8), ("main", "check", 10, 9),
        ("check", "leaf", 20, 8),
    )  # fmt: skip
    expected = ChangedCaller(key("main"), key("check"), inf)
    assert changed_caller(key("leaf"), [before], [after]) == expected


def test_more_outermost_calls_have_no_caller() -> None:
    before, after = trace_of(("", "leaf", 10, 8)), trace_of(("", "leaf", 20, 8))
    assert changed_caller(key("leaf"), [before], [after]) is None


def test_recursion_ends_the_search() -> None:
    before = trace_of(("", "f", 1, 99), ("f", "f", 10, 8))
    after = trace_of(("", "f", 1, 99), ("f", "f", 90, 8))
    assert changed_caller(key("f"), [before], [after]) is None


def test_growth_by_several_callers_has_no_single_one() -> None:
    before = trace_of(
        ("", "a", 1, 50), ("", "b", 1, 50), ("a", "leaf", 10, 5), ("b", "leaf", 10, 5)
    )
    after = trace_of(("", "a", 1, 99), ("", "b", 1, 99), ("a", "leaf", 20, 5), ("b", "leaf", 20, 5))
    assert changed_caller(key("leaf"), [before], [after]) is None
