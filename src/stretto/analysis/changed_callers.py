"""Finds the caller that made the time of a function grow.

A function that is called more often, or with more to do, takes longer without a change of its own.
The search begins at the function. If most of the growth is that of its calls by one caller, then:

- If these are more calls than before, and the caller itself is called as often as before, the
  caller calls it more often. If the caller is called more often, too, the search goes on there.
- If they are as many calls as before, and other callers' calls take as long as before, the calls
  of this caller have more to do.

Otherwise the growth is the function's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stretto.analysis.trace_diff import Calls, Key

    Traces = Sequence[Mapping[Key, Calls]]

_MOST = 0.8
"""The part of a growth that is most of it."""
_MAX_DEPTH = 100


class ChangedCaller(NamedTuple):
    """A caller that changed.

    Attributes:
        caller: The caller.
        callee: What it calls more often, or with more to do.
        more_calls: How many times as often it calls that: 0 if as often as before, infinite if it
            did not call that before.
    """

    caller: Key
    callee: Key
    more_calls: float


class _Side(NamedTuple):
    """The mean number of calls and the mean time of one side's traces."""

    number: float
    time: float


class _Calls(NamedTuple):
    """Some calls, before and after."""

    before: _Side
    after: _Side

    @property
    def growth(self) -> float:
        return self.after.time - self.before.time

    @property
    def are_more(self) -> bool:
        """Whether the number of calls explains at least half of the growth."""
        old, new = self
        more = new.number - old.number
        return more > 0 and (not old.number or more * old.time / old.number >= self.growth / 2)


def changed_caller(key: Key, before: Traces, after: Traces) -> ChangedCaller | None:
    """Return the caller that made a function's self time grow; None if that is its own growth.

    Args:
        key: The function.
        before: The calls in each trace before.
        after: The same for the traces after.
    """
    callee, seen = key, {key}
    for _ in range(_MAX_DEPTH):
        calls = _by_caller(callee, before, after, with_inside=callee != key)
        caller = _main_caller(calls)
        if caller is None or caller in seen:
            return None
        of_caller = calls.pop(caller)
        if not of_caller.are_more:
            others = _grows_less(calls, of_caller) if callee == key else False
            return ChangedCaller(caller, callee, 0) if others else None
        rates = _rates(of_caller, _number(caller, before), _number(caller, after))
        if rates is not None:
            return ChangedCaller(caller, callee, rates)
        seen.add(caller)
        callee = caller
    return None


def _by_caller(
    key: Key, before: Traces, after: Traces, *, with_inside: bool
) -> dict[Key | None, _Calls]:
    callers = dict.fromkeys(
        caller for trace in (*before, *after) if key in trace for caller in trace[key].callers
    )
    return {
        caller: _Calls(*(_mean(key, caller, side, with_inside) for side in (before, after)))
        for caller in callers
    }


def _mean(key: Key, caller: Key | None, side: Traces, with_inside: bool) -> _Side:
    found = [trace[key].callers.get(caller) for trace in side if key in trace]
    calls = [each for each in found if each is not None]
    times = (each.with_inside if with_inside else each.total for each in calls)
    return _Side(sum(each.number for each in calls) / len(side), sum(times) / len(side))


def _main_caller(calls: Mapping[Key | None, _Calls]) -> Key | None:
    """Return the caller whose calls are most of the growth; None if there is none."""
    whole = sum(each.growth for each in calls.values() if each.growth > 0)
    return next((key for key, each in calls.items() if each.growth > _MOST * whole), None)


def _grows_less(others: Mapping[Key | None, _Calls], calls: _Calls) -> bool:
    """Return whether the calls of others took time, and grew by less than half as much."""
    old = sum(each.before.time for each in others.values())
    growth = sum(each.growth for each in others.values())
    return old > 0 and growth / old < calls.growth / max(calls.before.time, 1) / 2


def _rates(calls: _Calls, before: float, after: float) -> float | None:
    """Return how many times as often a caller makes calls; None if it is only called more often.

    Args:
        calls: The calls that it makes.
        before: The number of its own calls before.
        after: The same after.
    """
    if not before:
        return None
    old, new = calls.before.number / before, calls.after.number / after
    more = calls.after.number - calls.before.number
    if calls.after.number - old * after < more / 2:
        return None
    return new / old if old else float("inf")


def _number(key: Key, side: Traces) -> float:
    return sum(trace[key].number for trace in side if key in trace) / len(side)
