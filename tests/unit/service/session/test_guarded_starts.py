"""GuardedStarts keeps the start times of sessions with extra guardrails for 300 s."""

from __future__ import annotations

from stretto.service.limits import MAX_GUARDED_STARTS, RESTART_WITH_GUARDRAILS_NS
from stretto.service.session.guarded_starts import GuardedStarts


def test_age_of_a_session_start_is_unknown_after_300_s():
    starts = GuardedStarts()
    starts.add("a", 1000)
    assert starts.age_ns("b", 1000) is None
    assert starts.age_ns("a", 1000 + RESTART_WITH_GUARDRAILS_NS - 1) is not None
    assert starts.age_ns("a", 1000 + RESTART_WITH_GUARDRAILS_NS) is None


def test_session_starts_older_than_300_s_are_deleted():
    starts = GuardedStarts()
    for number in range(10):
        starts.add(f"early {number}", number)
    starts.add("early 9", RESTART_WITH_GUARDRAILS_NS + 5)
    assert len(starts) == 4  # "early 6" to "early 9" remain; "early 9" was added again.
    starts.add("late", 3 * RESTART_WITH_GUARDRAILS_NS)
    assert len(starts) == 1


def test_number_of_stored_session_starts_is_limited():
    starts = GuardedStarts()
    for number in range(MAX_GUARDED_STARTS + 10):
        starts.add(f"{number}", 5)
    assert len(starts) == MAX_GUARDED_STARTS
    assert starts.age_ns("9", 6) is None
    assert starts.age_ns("10", 6) == 1
