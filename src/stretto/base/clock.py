"""Clocks: the trace clock, and the six that a clock snapshot relates to it."""

from __future__ import annotations

import time
from typing import Protocol

BOOTTIME = 6
"""Id of the default trace clock (clock_snapshot.proto)."""

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
    """Where the service gets time from."""

    def boottime_ns(self) -> int: ...
    def walltime_ns(self) -> int: ...
    def snapshot(self) -> list[tuple[int, int]]:
        """(clock id, nanoseconds) of all clocks, read as close together as possible."""


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def boottime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def walltime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_REALTIME)

    def snapshot(self) -> list[tuple[int, int]]:
        return [(ident, time.clock_gettime_ns(clock)) for ident, clock in SNAPSHOT_CLOCKS]
