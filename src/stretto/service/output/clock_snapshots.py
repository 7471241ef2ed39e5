"""Clock snapshots of a session: the first, and those that show that clocks have drifted."""

from __future__ import annotations

from collections import deque

from stretto.base.clock import BOOTTIME
from stretto.service.limits import MAX_QUEUED_CLOCK_SNAPSHOTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.clock import Clock

Snapshot = list[tuple[int, int]]

_DRIFT_NS = 10_000_000


class ClockSnapshots:
    """Takes snapshots, and keeps those that the trace hasn't got yet.

    A session may run for days before it is read: at most 16 wait, the oldest go first,
    and a snapshot is kept only if it says something that the last one waiting doesn't.
    """

    __slots__ = ("_clock", "_enabled", "_queue", "initial")

    def __init__(self, clock: Clock, *, enabled: bool) -> None:
        self._clock = clock
        self._enabled = enabled
        self._queue: deque[Snapshot] = deque(maxlen=MAX_QUEUED_CLOCK_SNAPSHOTS)
        self.initial: Snapshot | None = None

    def take_initial(self) -> None:
        """Take the snapshot that a trace begins with.

        Those that a trigger took before the start are dropped: in the trace they would follow
        this one, and clocks that go back are an error to who reads it.
        """
        if self._enabled:
            self._queue.clear()
            self.initial = self._clock.snapshot()

    def take(self) -> None:
        """Take a snapshot; keep it if a clock has drifted since the last one kept."""
        if not self._enabled:
            return
        snapshot = self._clock.snapshot()
        if not self._queue or _drifted(self._queue[-1], snapshot):
            self._queue.append(snapshot)

    def queued(self) -> list[Snapshot]:
        """Those that wait."""
        return list(self._queue)

    def copy(self) -> ClockSnapshots:
        """The same snapshots, to be read on their own."""
        copy = ClockSnapshots(self._clock, enabled=self._enabled)
        copy.initial = self.initial
        copy._queue.extend(self._queue)
        return copy

    def clear(self) -> None:
        """The trace has got all that waited."""
        self._queue.clear()


def _drifted(before: Snapshot, now: Snapshot) -> bool:
    earlier = dict(before)
    elapsed = dict(now).get(BOOTTIME, 0) - earlier.get(BOOTTIME, 0)
    return any(
        abs(time_ns - earlier.get(ident, 0) - elapsed) >= _DRIFT_NS for ident, time_ns in now
    )
