"""Start times of sessions with extra guardrails, by unique session name.

A session with the same name may start again after `RESTART_WITH_GUARDRAILS_NS`; the old start time
is then removed.
"""

from __future__ import annotations

from stretto.service.limits import MAX_GUARDED_STARTS, RESTART_WITH_GUARDRAILS_NS


class GuardedStarts:
    """Session starts of the last 300 s; at most the newest MAX_GUARDED_STARTS."""

    def __init__(self) -> None:
        self._started_ns: dict[str, int] = {}
        """The start times by session name, in the order of the starts."""

    def __len__(self) -> int:
        return len(self._started_ns)

    def add(self, name: str, now_ns: int) -> None:
        """Add the start of a session of this name."""
        starts = self._started_ns
        starts.pop(name, None)
        starts[name] = now_ns
        oldest_ns = now_ns - RESTART_WITH_GUARDRAILS_NS
        while len(starts) > MAX_GUARDED_STARTS or next(iter(starts.values())) <= oldest_ns:
            del starts[next(iter(starts))]

    def age_ns(self, name: str, now_ns: int) -> int | None:
        """Return the ns since the last start of this name, if a new start is refused.

        Returns None if a new session of this name may start now.
        """
        started_ns = self._started_ns.get(name)
        if started_ns is None or now_ns - started_ns >= RESTART_WITH_GUARDRAILS_NS:
            return None
        return now_ns - started_ns
