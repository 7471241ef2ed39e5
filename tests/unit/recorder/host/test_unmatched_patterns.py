"""The notes about patterns of `--include` that matched nothing."""

from __future__ import annotations

from stretto.recorder.host.unmatched_patterns import unmatched_notes


def test_pattern_that_matched_in_no_process_has_a_note() -> None:
    notes = unmatched_notes({1: ["a", "b"], 2: ["b", "c"], 3: ["b"]}, {1, 2})
    assert notes == ["no function that was called matches --include b"]


def test_no_pattern_is_noted_if_a_process_has_not_reported() -> None:
    assert unmatched_notes({1: ["a"]}, {1, 2}) == []
    assert unmatched_notes({}, set()) == []
