"""What happened to a session, until its trace is read (TracingServiceEvent)."""

from __future__ import annotations

from collections import deque

from stretto.service.limits import MAX_QUEUED_FLUSH_EVENTS, MAX_SLOW_DATA_SOURCES
from stretto.service.service_packets import ALL_DATA_SOURCES_FLUSHED, FLUSH_STARTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from stretto.base.clock import Clock
    from stretto.service.service_packets import ServicePackets

_Event = tuple[int, int, int, tuple[tuple[str, str], ...]]
"""(boottime, running number, event, data sources)"""

_HISTORY: Final = {
    FLUSH_STARTED: MAX_QUEUED_FLUSH_EVENTS,
    ALL_DATA_SOURCES_FLUSHED: MAX_QUEUED_FLUSH_EVENTS,
}


class LifecycleEvents:
    """Events that wait for the next read: of each kind the last, of flushes the last 64."""

    __slots__ = ("_clock", "_count", "_queues")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._queues: dict[int, deque[_Event]] = {}

    def add(self, event: int, data_sources: Sequence[tuple[str, str]] = ()) -> None:
        """Note `event`, a field number of TracingServiceEvent, as of now."""
        queue = self._queues.setdefault(event, deque(maxlen=_HISTORY.get(event, 1)))
        self._count += 1
        listed = tuple(data_sources[:MAX_SLOW_DATA_SOURCES])
        queue.append((self._clock.boottime_ns(), self._count, event, listed))

    def packets(self, build: ServicePackets) -> list[bytes]:
        """All that wait, as encoded packets in the order of time."""
        waiting = sorted(entry for queue in self._queues.values() for entry in queue)
        return [build.service_event(time, event, listed) for time, _, event, listed in waiting]

    def copy(self) -> LifecycleEvents:
        """The same events, to be read on their own."""
        copy = LifecycleEvents(self._clock)
        copy._queues = {event: queue.copy() for event, queue in self._queues.items()}
        return copy

    def clear(self) -> None:
        """The trace has got all that waited."""
        self._queues.clear()
