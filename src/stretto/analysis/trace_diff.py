"""Compares two traces, or two groups of traces, by function and by slice.

The time of a function or slice is its self time: without the slices inside, so that one slow
function is not reported for each of its callers.

Noise: a change that noise explains is marked. In groups of traces of which each has three or more,
a change counts if the times of one group are all above those of the other. Otherwise the calls are
the sample: a change counts if it is more than three standard errors. Calls of one run resemble each
other, so this test finds more changes than there are; several runs of each side tell more. With
fewer than five calls on a side there is no test.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto import _native

    Key = tuple[str, str]

MIN_GROUP = 3
"""From this many traces on, a group's times are the sample."""
_MIN_CALLS = 5
_ERRORS = 3


class Calls:
    """The number of calls of a function, the sum of their self times in ns, and of the squares."""

    __slots__ = ("number", "squares", "total")

    def __init__(self) -> None:
        self.number = self.total = self.squares = 0

    def add(self, duration: int) -> None:
        """Count a call."""
        self.number += 1
        self.total += duration
        self.squares += duration * duration

    @property
    def variance(self) -> float:
        """The variance of the total, estimated from the calls."""
        mean = self.total / self.number
        return self.number * max(self.squares / self.number - mean * mean, 0.0)


class Change(NamedTuple):
    """The change of one function or slice; times are means of the traces of a side, in ns.

    Attributes:
        share: The larger of its shares of each side's time.
        is_noise: Whether noise explains the change; None if there are too few calls to know.
    """

    category: str
    name: str
    before: float
    after: float
    calls_before: float
    calls_after: float
    share: float
    is_noise: bool | None

    @property
    def ratio(self) -> float:
        """The relative change: 0.1 is 10 % more time."""
        if self.before:
            return self.after / self.before - 1
        return float("inf") if self.after else 0.0


def self_times(importer: _native.TraceImporter) -> dict[Key, Calls]:
    """Return the self times of a trace by (category, name). Unfinished slices are left out."""
    names, rows = importer.rows("slice")
    places = [names.index(n) for n in ("dur", "parent_id", "category", "name")]
    columns = [[row[place] for row in rows] for place in places]
    own = list(columns[0])
    for duration, parent in zip(columns[0], columns[1], strict=True):
        if parent is not None and duration > 0:
            own[parent] -= duration
    found: dict[Key, Calls] = {}
    for duration, self_time, category, name in zip(columns[0], own, *columns[2:], strict=True):
        if duration > 0:
            calls = found.setdefault((category or "", name or ""), Calls())
            calls.add(max(self_time, 0))
    return found


def compare(before: Sequence[dict[Key, Calls]], after: Sequence[dict[Key, Calls]]) -> list[Change]:
    """Return the changes from one side to the other; the largest difference comes first."""
    keys = dict.fromkeys(key for trace in (*before, *after) for key in trace)
    wholes = [sum(c.total for t in side for c in t.values()) or 1 for side in (before, after)]
    changes = [_change(key, before, after, wholes) for key in keys]
    return sorted(changes, key=lambda change: -abs(change.after - change.before))


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
