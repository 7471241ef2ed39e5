"""Compares two traces, or two groups of traces, by function and by slice.

The time of a function or slice is its self time, without the slices inside. So a slow function is
not also reported for each of its callers. Callers whose time changed by what is inside them are
found by `changed_inside`.

A change may be noise:

- If each side has three traces or more, a change is noise unless all times of one side are above
  all times of the other side.
- Otherwise the calls are the sample: a change is noise if it is at most three standard errors.
  Calls of one run resemble each other, so this test takes some noise for a change. More runs of
  each side are better.
- If a trace has one to four calls, the second test isn't made: whether the change is noise is
  unknown.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stretto import _native

    Key = tuple[str, str]

MIN_GROUP = 3
"""With so many traces on each side, their times are the sample, not the calls."""
_MIN_CALLS = 5
_ERRORS = 3


class Calls:
    """The calls of one function in one trace.

    Attributes:
        number: The number of calls.
        total: The sum of their self times, in ns.
        squares: The sum of the squares of their self times.
        with_inside: The sum of their times with the slices inside, in ns; recursion counts once.
        callers: The calls by what is directly around them: None is nothing. They have no callers
            of their own, and their `with_inside` counts recursion twice.
    """

    __slots__ = ("callers", "number", "squares", "total", "with_inside")

    def __init__(self) -> None:
        self.number = self.total = self.squares = self.with_inside = 0
        self.callers: dict[Key | None, Calls] = {}

    def add(self, own: int, whole: int) -> None:
        """Count a call with this self time, and this time with the slices inside, in ns."""
        self.number += 1
        self.total += own
        self.squares += own * own
        self.with_inside += whole

    def add_all(self, other: Calls) -> None:
        """Count other calls, too, but not their callers."""
        self.number += other.number
        self.total += other.total
        self.squares += other.squares
        self.with_inside += other.with_inside

    @property
    def variance(self) -> float:
        """The variance of the total, estimated from the calls."""
        mean = self.total / self.number
        return self.number * max(self.squares / self.number - mean * mean, 0.0)


class Change(NamedTuple):
    """The change of one function or slice.

    Attributes:
        before: Its self time in the traces before: the mean of the traces, in ns.
        after: The same for the traces after.
        calls_before: The mean number of its calls in the traces before.
        calls_after: The same for the traces after.
        share: Its share of all self time, from 0 to 1, on the side on which it is larger.
        is_noise: Whether noise explains the change; None if there are too few calls to know.
        total_before: Its time with the slices inside in the traces before: the mean, in ns.
        total_after: The same for the traces after.
    """

    category: str
    name: str
    before: float
    after: float
    calls_before: float
    calls_after: float
    share: float
    is_noise: bool | None
    total_before: float = 0
    total_after: float = 0

    @property
    def ratio(self) -> float:
        """The relative change: 0.1 is 10 % more time."""
        if self.before:
            return self.after / self.before - 1
        return float("inf") if self.after else 0.0

    @property
    def inside(self) -> float:
        """By how much the time of the slices inside changed, in ns."""
        return (self.total_after - self.total_before) - (self.after - self.before)


def self_times(importer: _native.TraceImporter, *, cpu: bool = False) -> dict[Key, Calls]:
    """Return the self times of a trace by (category, name). Unfinished slices are left out.

    Args:
        importer: The trace.
        cpu: Count CPU time. Slices for which the trace has none are left out.
    """
    names, rows = importer.rows("slice")
    kind = "thread_dur" if cpu else "dur"
    places = [names.index(n) for n in (kind, "parent_id", "category", "name")]
    columns = [[row[place] for row in rows] for place in places]
    columns[0] = [duration or 0 for duration in columns[0]]
    own = list(columns[0])
    for duration, parent in zip(columns[0], columns[1], strict=True):
        if parent is not None and duration > 0:
            own[parent] -= duration
    found = _by_function(columns[0], own, columns[1], zip(*columns[2:], strict=True))
    for row in importer.slice_totals("function")[2]:
        if (key := (row[0] or "", row[1] or "")) in found:
            found[key].with_inside = row[10] if cpu else row[4]
    return found


def _by_function(
    durations: list[int],
    own: list[int],
    parents: list[int | None],
    names: Iterable[tuple[str | None, str | None]],
) -> dict[Key, Calls]:
    """Return the calls by (category, name), from the columns of the slices."""
    numbers: dict[tuple[str | None, str | None], int] = {}
    functions = [numbers.setdefault(name, len(numbers)) for name in names]
    pairs: dict[tuple[int | None, int], Calls] = {}
    for duration, self_time, parent, function in zip(
        durations, own, parents, functions, strict=True
    ):
        if duration > 0:
            pair = None if parent is None else functions[parent], function
            calls = pairs.get(pair)
            if calls is None:
                calls = pairs[pair] = Calls()
            calls.add(max(self_time, 0), duration)
    return _joined(pairs, [(category or "", name or "") for category, name in numbers])


def _joined(pairs: dict[tuple[int | None, int], Calls], keys: list[Key]) -> dict[Key, Calls]:
    """Return the calls by function, from those by caller and function."""
    found: dict[Key, Calls] = {}
    for (caller, function), calls in pairs.items():
        whole = found.setdefault(keys[function], Calls())
        whole.add_all(calls)
        key = None if caller is None else keys[caller]
        whole.callers.setdefault(key, Calls()).add_all(calls)
    return found


def compare(before: Sequence[dict[Key, Calls]], after: Sequence[dict[Key, Calls]]) -> list[Change]:
    """Return the changes from one side to the other; the largest difference comes first."""
    keys = dict.fromkeys(key for trace in (*before, *after) for key in trace)
    wholes = [sum(c.total for t in side for c in t.values()) or 1 for side in (before, after)]
    changes = [_change(key, before, after, wholes) for key in keys]
    return sorted(changes, key=lambda change: -abs(change.after - change.before))


def changed_inside(changes: Sequence[Change], min_share: float) -> list[Change]:
    """Return the changes that come from the slices inside, the largest one first.

    Left out are those that are less than the noise of all self times, so that noise may explain
    them, and functions that only one side has.

    Args:
        changes: All changes.
        min_share: The least share of all time that the time inside changed by, from 0 to 1.
    """
    whole = max(sum(c.before for c in changes), sum(c.after for c in changes))
    noise = sum(abs(c.after - c.before) for c in changes if c.is_noise)
    least = max(noise, min_share * whole)

    def is_caller(c: Change) -> bool:
        total = c.total_after - c.total_before
        return bool(c.before and c.after) and abs(c.inside) > max(least, abs(total) / 2)

    return sorted(filter(is_caller, changes), key=lambda c: -abs(c.total_after - c.total_before))


def _change(
    key: Key,
    before: Sequence[dict[Key, Calls]],
    after: Sequence[dict[Key, Calls]],
    wholes: list[int],
) -> Change:
    nothing = Calls()
    sides = [[trace.get(key, nothing) for trace in side] for side in (before, after)]
    totals = [sum(calls.total for calls in side) for side in sides]
    numbers = [sum(calls.number for calls in side) for side in sides]
    return Change(
        *key,
        before=totals[0] / len(before),
        after=totals[1] / len(after),
        calls_before=numbers[0] / len(before),
        calls_after=numbers[1] / len(after),
        share=max(total / whole for total, whole in zip(totals, wholes, strict=True)),
        is_noise=_is_noise(*sides),
        total_before=sum(calls.with_inside for calls in sides[0]) / len(before),
        total_after=sum(calls.with_inside for calls in sides[1]) / len(after),
    )


def _is_noise(before: list[Calls], after: list[Calls]) -> bool | None:
    if min(len(before), len(after)) >= MIN_GROUP:
        old, new = ([calls.total for calls in side] for side in (before, after))
        return max(old) >= min(new) and max(new) >= min(old)
    if any(0 < calls.number < _MIN_CALLS for calls in (*before, *after)):
        return None
    means = [sum(calls.total for calls in side) / len(side) for side in (before, after)]
    variance = sum(
        calls.variance / len(side) ** 2
        for side in (before, after)
        for calls in side
        if calls.number
    )
    return abs(means[1] - means[0]) <= _ERRORS * sqrt(variance)
