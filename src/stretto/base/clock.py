"""Clocks: the trace clock, and the six that a clock snapshot relates to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

BOOTTIME = 6
"""Id of the default trace clock (clock_snapshot.proto)."""

TSC = 9
"""Id of the time stamp counter of x86-64: counts, not nanoseconds."""

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
        """(clock id, nanoseconds) of all clocks, read as close together as possible."""


class SystemClock:
    """The machine's clocks.

    Args:
        read_tsc: Reads the processor's time stamp counter (`_native.read_tsc`); snapshots
            then relate it to the clocks, which places events with raw counts (perf, etw)
            on the time line.
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
