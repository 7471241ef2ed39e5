"""RPC calls by method: counts, percentiles, the slowest calls, and the unmatched ones."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stretto.analysis.rpc_flows import Call

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Durations:
    """Nearest-rank percentiles in nanoseconds; None if there are no measured values."""

    p50: int | None = None
    p90: int | None = None
    p99: int | None = None
    max: int | None = None

    @classmethod
    def of(cls, durations: Iterable[int | None]) -> Durations:
        """Compute the percentiles of durations; None values are ignored."""
        known = sorted(duration for duration in durations if duration is not None)
        if not known:
            return cls()
        # Nearest rank: the smallest value such that `percent` % of all values are at most it.
        ranks = [-(-len(known) * percent // 100) - 1 for percent in PERCENTILES]
        p50, p90, p99 = (known[rank] for rank in ranks)
        return cls(p50, p90, p99, known[-1])


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """All calls of one method and kind.

    Messages without a flow can't be joined to calls, so the number of these calls is estimated: it
    is the number of messages sent or of messages received, whichever is greater.
    """

    method: str
    kind: str
    count: int
    unmatched: int
    """The number of calls with a missing message, or with messages that can't be joined."""
    latency: Durations
    queueing: Durations
    service: Durations


def select_calls(calls: Sequence[Call], pattern: str) -> list[Call]:
    """Select calls by the method's name; the pattern, with `*` and `?`, may omit the service."""
    return [
        call
        for call in calls
        if fnmatchcase(call.method, pattern) or fnmatchcase(call.method.rpartition(".")[2], pattern)
    ]


def by_method(calls: Sequence[Call]) -> list[MethodSummary]:
    """Summarize the calls of each method and kind; the most frequent ones come first."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        groups.setdefault((call.method, call.kind), []).append(call)
    summaries = [_summary(method, kind, group) for (method, kind), group in groups.items()]
    return sorted(summaries, key=lambda each: (-each.count, each.method, each.kind))


def _summary(method: str, kind: str, group: Sequence[Call]) -> MethodSummary:
    loose = [call for call in group if call.is_loose]
    unjoined = _calls_of(loose)
    return MethodSummary(
        method,
        kind,
        len(group) - len(loose) + unjoined,
        sum(not call.matched for call in group) - len(loose) + unjoined,
        Durations.of(call.latency_ns for call in group),
        Durations.of(call.queueing_ns for call in group),
        Durations.of(call.service_ns for call in group),
    )


def _calls_of(loose: Sequence[Call]) -> int:
    """Return the smallest possible number of calls for messages without a flow.

    A call may have several replies, so replies are counted only if there are no requests.
    """
    sent = sum(call.sent is not None for call in loose)
    received = sum(call.received is not None for call in loose)
    return max(sent, received) or int(bool(loose))


def slowest(calls: Sequence[Call]) -> list[Call]:
    """Return the calls with known latency, the slowest first."""
    known = [call for call in calls if call.latency_ns is not None]
    return sorted(known, key=lambda call: -(call.latency_ns or 0))


def unmatched(calls: Sequence[Call]) -> list[Call]:
    """Return the calls with missing messages."""
    return [call for call in calls if not call.matched]
