"""Lifecycle events of a session, queued until its trace is read (TracingServiceEvent)."""

from __future__ import annotations

from stretto.base.c_modules import deque
from stretto.service.limits import (
    MAX_BUFFERS_PER_SESSION,
    MAX_QUEUED_FLUSH_EVENTS,
    MAX_SLOW_DATA_SOURCES,
)
from stretto.service.output.service_packets import (
    ALL_DATA_SOURCES_FLUSHED,
    BUFFER_CLONED,
    FLUSH_STARTED,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from stretto.base.clock import Clock
    from stretto.service.output.service_packets import ServicePackets

_Detail = int | tuple[tuple[str, str], ...]
_Event = tuple[int, int, int, _Detail]
"""(boottime, running number, event, detail)"""

_HISTORY: Final = {
    FLUSH_STARTED: MAX_QUEUED_FLUSH_EVENTS,
    ALL_DATA_SOURCES_FLUSHED: MAX_QUEUED_FLUSH_EVENTS,
    BUFFER_CLONED: MAX_BUFFERS_PER_SESSION,
}


class LifecycleEvents:
    """Queued events: the last event of each kind, and the last 64 flush events."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._queues: dict[int, deque[_Event]] = {}

    def add(self, event: int, data_sources: Sequence[tuple[str, str]] = ()) -> None:
        """Add `event`, a field number of TracingServiceEvent, with the current time."""
        listed = tuple(data_sources[:MAX_SLOW_DATA_SOURCES])
        self.add_at(self._clock.boottime_ns(), event, listed or 1)

    def add_at(self, time_ns: int, event: int, detail: _Detail = 1) -> None:
        """Add `event` with a given time; `detail` is a number or a list of data sources."""
        queue = self._queues.setdefault(event, deque(maxlen=_HISTORY.get(event, 1)))
        self._count += 1
        queue.append((time_ns, self._count, event, detail))

    def packets(self, build: ServicePackets) -> list[bytes]:
        """Return the queued events as encoded packets, ordered by time."""
        waiting = sorted(entry for queue in self._queues.values() for entry in queue)
        return [build.service_event(time, event, detail) for time, _, event, detail in waiting]

    def copy(self) -> LifecycleEvents:
        """Return a copy of the queued events."""
        copy = LifecycleEvents(self._clock)
        copy._count = self._count
        copy._queues = {event: queue.copy() for event, queue in self._queues.items()}
        return copy

    def clear(self) -> None:
        """Remove all queued events, after they were written into the trace."""
        self._queues.clear()
