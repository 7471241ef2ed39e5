"""Events in a session's trace about other sessions that run at the same time.

Such events are recorded only if the config sets `enable_concurrent_session_events`: other sessions
may be private.
"""

from __future__ import annotations

from stretto.base.c_modules import deque
from stretto.service.limits import MAX_CONCURRENT_SESSION_EVENTS
from stretto.service.output.packet_encoder import number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final, Protocol

    from stretto.base.clock import Clock
    from stretto.protos.config import TraceConfig
    from stretto.service.output.service_packets import ServicePackets

    class ConcurrentSession(Protocol):
        """The attributes of a session that an event contains."""

        session_id: int
        uid: int
        state: str

        @property
        def config(self) -> TraceConfig: ...


_STATES: Final = {
    "DISABLED": 1,
    "CONFIGURED": 2,
    "STARTED": 3,
    "STOP_WAIT": 4,
    "CLONED_READ_ONLY": 5,
}
"""ConcurrentSessionEvent.State by the name of a session's state."""


class ConcurrentSessions:
    """Events of other sessions, kept until the next read; at most the newest 4096."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: deque[tuple[int, bytes]] = deque(maxlen=MAX_CONCURRENT_SESSION_EVENTS)

    def note(self, other: ConcurrentSession) -> None:
        """Add an event with the current state of another session."""
        event = number(1, _STATES[other.state]) + text(2, other.config.unique_session_name)
        event += number(3, other.session_id) + number(4, other.uid)
        event += number(5, len(other.config.data_sources))
        self._events.append((self._clock.boottime_ns(), event))

    def note_all(self, others: Iterable[ConcurrentSession]) -> None:
        """Add an event for each of the other sessions, when this session starts."""
        for other in others:
            self.note(other)

    def take(self, build: ServicePackets) -> list[bytes]:
        """Remove all queued events and return them as encoded packets."""
        packets = [build.concurrent_session_event(*event) for event in self._events]
        self._events.clear()
        return packets
