"""Counter tracks of the functions that hold or allocate most memory, from the samples.

    held by load (shop.py)         bytes that the function has allocated itself, and that live
    allocated by parse (shop.py)   bytes per second that it has allocated since the last look

A look at the totals of all functions finds the `TOP` ones that hold most, and those that have
allocated most since the last look. A function that was once among them keeps its track, up to
`MAX_TRACKS` tracks of each kind. A value is written when it has changed. The totals are estimates:
a function has no track before it has allocated `LEAST_SAMPLES` sampling intervals, whose standard
error is 25 %.
"""

from __future__ import annotations

import os
from heapq import nlargest

import stretto
from stretto import _pyhooks
from stretto.base.hashes import fnv1a
from stretto.protos.trace import (
    CounterDescriptor,
    ProcessDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PERIOD_S = 0.5
"""The time between two looks, in s."""
TOP = 5
MAX_TRACKS = 20
LEAST_SAMPLES = 16

_HELD = "held", CounterDescriptor(unit=CounterDescriptor.UNIT_SIZE_BYTES)
_ALLOCATED = "allocated", CounterDescriptor(unit_name="bytes/s")


class _Tracks:
    """The tracks of one kind.

    Args:
        kind: What they count, and their unit.
        write: Writes a packet.
    """

    def __init__(
        self, kind: tuple[str, CounterDescriptor], write: Callable[[TracePacket], object]
    ) -> None:
        self._kind, self._unit = kind
        self._write = write
        self._values: dict[str, int] = {}
        self._described: set[str] = set()

    def clear(self) -> None:
        """Describe all tracks again, and write all values."""
        self._described.clear()
        self._values = dict.fromkeys(self._values, -1)

    def write(self, values: dict[str, int], now: int) -> None:
        """Write the values that have changed, of the functions that have a track or get one."""
        for name in nlargest(TOP, values, key=values.__getitem__):
            if len(self._values) < MAX_TRACKS and values[name]:
                self._values.setdefault(name, -1)
        for name, before in self._values.items():
            value = values.get(name, 0)
            if value != before:
                self._values[name] = value
                event = TrackEvent(
                    type=TrackEvent.TYPE_COUNTER, track_uuid=self._uuid(name), counter_value=value
                )
                self._write(TracePacket(timestamp=now, track_event=event))

    def _uuid(self, function: str) -> int:
        process = stretto.process_track().uuid
        name = f"{self._kind} by {function}"
        uuid = process ^ fnv1a(name.encode(errors="replace"))
        if function not in self._described:
            self._described.add(function)
            track = TrackDescriptor(uuid=uuid, parent_uuid=process, name=name, counter=self._unit)
            self._write(TracePacket(track_descriptor=track))
        return uuid


class FunctionCounters:
    """The counter tracks of a session.

    Args:
        write: Writes a packet.
    """

    def __init__(self, write: Callable[[TracePacket], object]) -> None:
        self._write = write
        self._held, self._allocated = _Tracks(_HELD, write), _Tracks(_ALLOCATED, write)
        self._last: dict[str, int] = {}
        self._last_ns = stretto.now()
        self._has_owner = False

    def clear(self) -> None:
        """Write everything at the next look."""
        self._has_owner = False
        self._held.clear()
        self._allocated.clear()

    def look(self) -> None:
        """Write what has changed since the last look."""
        _pyhooks.heap_unsampled(self._look)

    def _look(self) -> None:
        now = stretto.now()
        held, allocated = _totals()
        elapsed = max(1, now - self._last_ns)
        rates = {
            name: (size - self._last.get(name, 0)) * 10**9 // elapsed
            for name, size in allocated.items()
        }
        self._last, self._last_ns = allocated, now
        self._describe_owner()
        self._held.write(held, now)
        self._allocated.write(rates, now)

    def _describe_owner(self) -> None:
        if not self._has_owner:
            self._has_owner = True
            uuid, process = stretto.process_track().uuid, ProcessDescriptor(pid=os.getpid())
            self._write(TracePacket(track_descriptor=TrackDescriptor(uuid=uuid, process=process)))


def _totals() -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes that functions hold, and those that they have allocated, by their names."""
    held: dict[str, int] = {}
    allocated: dict[str, int] = {}
    least = LEAST_SAMPLES * _pyhooks.heap_stats()["interval"]
    for number, live, size in _pyhooks.heap_functions(least):
        function, file = _pyhooks.heap_function(number)
        name = function if file == "<python>" else f"{function} ({os.path.basename(file)})"
        held[name] = held.get(name, 0) + live
        allocated[name] = allocated.get(name, 0) + size
    return held, allocated
