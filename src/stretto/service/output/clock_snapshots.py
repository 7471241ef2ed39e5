"""Clock snapshots of a session: an initial one, and more if clocks have drifted."""

from __future__ import annotations

from stretto.base.c_modules import deque
from stretto.base.clock import BOOTTIME
from stretto.service.limits import MAX_QUEUED_CLOCK_SNAPSHOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.clock import Clock

Snapshot = list[tuple[int, int]]

_DRIFT_NS = 10_000_000


class ClockSnapshots:
    """Takes snapshots and queues them until the trace is read.

    A session may run for days before it is read. So at most 16 snapshots are queued, the oldest
    are dropped first, and a snapshot is queued only if a clock has drifted since the last one.
    """

    def __init__(self, clock: Clock, *, enabled: bool) -> None:
        self._clock = clock
        self._enabled = enabled
        self._queue: deque[Snapshot] = deque(maxlen=MAX_QUEUED_CLOCK_SNAPSHOTS)
        self.initial: Snapshot | None = None

    def take_initial(self) -> None:
        """Take the initial snapshot of a trace.

        Snapshots that triggers have taken before the start are dropped: they would follow the
        initial snapshot in the trace, and readers report clocks that go back as an error.
        """
        if self._enabled:
            self._queue.clear()
            self.initial = self._clock.snapshot()

    def take(self) -> None:
        """Take a snapshot. Queue it if a clock has drifted since the last queued snapshot."""
        if not self._enabled:
            return
        snapshot = self._clock.snapshot()
        if not self._queue or _drifted(self._queue[-1], snapshot):
            self._queue.append(snapshot)

    def queued(self) -> list[Snapshot]:
        """Return the queued snapshots."""
        return list(self._queue)

    def copy(self) -> ClockSnapshots:
        """Return a copy of the queued snapshots."""
        copy = ClockSnapshots(self._clock, enabled=self._enabled)
        copy.initial = self.initial
        copy._queue.extend(self._queue)
        return copy

    def clear(self) -> None:
        """Remove all queued snapshots, after they were written into the trace."""
        self._queue.clear()


def _drifted(before: Snapshot, now: Snapshot) -> bool:
    earlier = dict(before)
    elapsed = dict(now).get(BOOTTIME, 0) - earlier.get(BOOTTIME, 0)
    return any(
        abs(time_ns - earlier.get(ident, 0) - elapsed) >= _DRIFT_NS for ident, time_ns in now
    )
