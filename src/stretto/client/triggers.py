"""Triggers that the program has fired, and that no service has heard of yet."""

from __future__ import annotations

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_WAITING = 1000
"""More of them push out the oldest: a program may fire in a loop."""

NS_PER_MS = 1_000_000


class WaitingTriggers:
    """Triggers and when they are too old to be told.

    Args:
        now_ns: The clock.
    """

    def __init__(self, now_ns: Callable[[], int] = _native.boottime_ns) -> None:
        self._now_ns = now_ns
        self._waiting: list[tuple[int, str]] = []

    def add(self, names: Sequence[str], ttl_ms: float) -> None:
        """Keep triggers for so many milliseconds."""
        end_ns = self._now_ns() + round(ttl_ms * NS_PER_MS)
        self._waiting += [(end_ns, name) for name in names]
        del self._waiting[:-MAX_WAITING]

    def take(self) -> list[str]:
        """Those that aren't too old, in the order in which they were fired; they are gone."""
        waiting, self._waiting = self._waiting, []
        now_ns = self._now_ns()
        return [name for end_ns, name in waiting if now_ns < end_ns]
