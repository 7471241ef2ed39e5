"""Triggers that the program has activated before it is connected to a service."""

from __future__ import annotations

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_WAITING = 1000
"""The largest number of kept triggers; further ones replace the oldest."""


NS_PER_MS = 1_000_000


class WaitingTriggers:
    """Triggers, each with the time at which it expires.

    Args:
        now_ns: Returns the current time in ns.
    """

    def __init__(self, now_ns: Callable[[], int] = _native.boottime_ns) -> None:
        self._now_ns = now_ns
        self._waiting: list[tuple[int, str]] = []

    def add(self, names: Sequence[str], ttl_ms: float) -> None:
        """Keep triggers for `ttl_ms` milliseconds."""
        end_ns = self._now_ns() + round(ttl_ms * NS_PER_MS)
        self._waiting += [(end_ns, name) for name in names]
        del self._waiting[:-MAX_WAITING]

    def take(self) -> list[str]:
        """Remove and return the triggers that haven't expired, in the order of activation."""
        waiting, self._waiting = self._waiting, []
        now_ns = self._now_ns()
        return [name for end_ns, name in waiting if now_ns < end_ns]
