"""A clock that changes only when a test advances it."""

from __future__ import annotations

from stretto.base.clock import SNAPSHOT_CLOCKS

NS_PER_MS = 1_000_000


class FakeClock:
    """A `Clock` that is controlled by a test.

    Args:
        boottime_ns: Start value of the trace clock.
        walltime_ns: Start value of the wall clock.
    """

    def __init__(
        self,
        boottime_ns: int = 1_000_000_000,
        walltime_ns: int = 1_700_000_000_000_000_000,
    ) -> None:
        self._boottime_ns = boottime_ns
        self._wall_offset_ns = walltime_ns - boottime_ns

    def boottime_ns(self) -> int:
        return self._boottime_ns

    def walltime_ns(self) -> int:
        return self._boottime_ns + self._wall_offset_ns

    def snapshot(self) -> list[tuple[int, int]]:
        """Return (clock id, ns) of all clocks: wall time for ids 1 and 2, else boot time."""
        return [
            (ident, self.walltime_ns() if ident in (1, 2) else self._boottime_ns)
            for ident, _ in SNAPSHOT_CLOCKS
        ]

    def advance_ns(self, nanoseconds: int) -> None:
        """Advance all clocks by a time in ns."""
        if nanoseconds < 0:
            raise ValueError("clocks go forward; use step_walltime_ns for the wall clock")
        self._boottime_ns += nanoseconds

    def advance_ms(self, milliseconds: float) -> None:
        """Advance all clocks by a time in ms."""
        self.advance_ns(round(milliseconds * NS_PER_MS))

    def step_walltime_ns(self, nanoseconds: int) -> None:
        """Step the wall clock forward or (negative) back, as an administrator would."""
        self._wall_offset_ns += nanoseconds
