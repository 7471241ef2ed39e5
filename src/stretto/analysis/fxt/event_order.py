"""Sorting of a file's events by time, so that slices nest and each flow point follows its slice.

FXT's records come in any order. The record of a complete duration is written when the duration
ends, after the records of the events inside. This module splits a complete duration into a
beginning and an end. Events with the same time are sorted like this:

    0  ends of complete durations,
    1  beginnings of complete durations, the longest first,
    2  all others, in the order of the file.

So a flow point that was written before its enclosing duration comes after the duration's beginning.
A complete duration of length zero becomes an instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt

if TYPE_CHECKING:
    from stretto.analysis.fxt.records import Event
    from stretto.analysis.spool import Spool

_MAX_TIMESTAMP = (1 << 63) - 1
_ENDS, _BEGINNINGS, _OTHERS = range(3)


def add_event(spool: Spool, event: Event) -> bool:
    """Add an event to a spool.

    An entry of the spool has the fields of `Event` from `type` to `id`, without `timestamp`.

    Returns:
        False if the event's times are out of range.
    """
    start = event.timestamp
    complete = event.type == fxt.DURATION_COMPLETE
    if start > _MAX_TIMESTAMP or (complete and not start <= event.end <= _MAX_TIMESTAMP):
        return False
    kind, rank, length = event.type, _OTHERS, 0
    if complete and event.end > start:
        kind, rank, length = fxt.DURATION_BEGIN, _BEGINNINGS, event.end - start
    elif complete:
        kind = fxt.INSTANT
    arguments = tuple(map(tuple, event.arguments))
    size = sum(len(each.value) for each in event.arguments if isinstance(each.value, str | bytes))
    entry = (kind, *event.thread, event.category, event.name, arguments, event.id)
    spool.add((start, rank, -length), entry, size)
    if length:
        end = (fxt.DURATION_END, *event.thread, "", "", (), 0)
        spool.add((event.end, _ENDS, -start), end)
    return True
