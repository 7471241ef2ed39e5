"""Events of a file, put into the order of time, so that slices nest and flows find theirs.

FXT's records come in any order. A duration that is written when it is over (complete) stands behind
whatever happened in it; it is taken apart here, to a beginning and an end. Of what happens at the
same time,

    0  ends of complete durations come first,
    1  then beginnings of complete durations, the longest first,
    2  then all others, in the order of the file.

So a flow that was written before the duration that encloses it still finds it. A complete duration
of no length is an instant.
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
    """Add an event to a spool, as one or two entries: its fields up to `id`, but for the time.

    Returns:
        False: its times are impossible.
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
