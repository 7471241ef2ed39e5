"""The trace clock, and the other clocks of a clock snapshot."""

from __future__ import annotations

import time

TYPE_CHECKING = False  # `typing` isn't imported: its import takes longer than that of this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol
else:
    Protocol = object

BOOTTIME = 6
"""The id of the default trace clock (clock_snapshot.proto)."""

TSC = 9
"""The id of x86-64's time stamp counter; its values are counts, not nanoseconds."""

SNAPSHOT_CLOCKS = (
    (BOOTTIME, time.CLOCK_BOOTTIME),
    (2, getattr(time, "CLOCK_REALTIME_COARSE", 5)),
    (4, getattr(time, "CLOCK_MONOTONIC_COARSE", 6)),
    (1, time.CLOCK_REALTIME),
    (3, time.CLOCK_MONOTONIC),
    (5, time.CLOCK_MONOTONIC_RAW),
)
"""(Perfetto's clock id, clockid_t), in the order in which the service writes them."""


class Clock(Protocol):
    """The service's source of time."""

    def boottime_ns(self) -> int: ...
    def walltime_ns(self) -> int: ...
    def snapshot(self) -> list[tuple[int, int]]:
        """Return (clock id, nanoseconds) of all clocks, read as close together as possible."""


class SystemClock:
    """The machine's clocks.

    Args:
        read_tsc: Reads the processor's time stamp counter (`_native.read_tsc`). If given, snapshots
            include the counter, so that events with counter values (perf, etw) can be placed on the
            timeline.
    """

    __slots__ = ("_read_tsc",)

    def __init__(self, read_tsc: Callable[[], int | None] | None = None) -> None:
        self._read_tsc = read_tsc

    def boottime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def walltime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_REALTIME)

    def snapshot(self) -> list[tuple[int, int]]:
        clocks = [(ident, time.clock_gettime_ns(clock)) for ident, clock in SNAPSHOT_CLOCKS]
        count = self._read_tsc() if self._read_tsc else None
        return clocks if count is None else [*clocks, (TSC, count)]
