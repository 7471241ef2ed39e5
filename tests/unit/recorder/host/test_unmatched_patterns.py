"""The notes about patterns of `--include` that matched nothing."""

from __future__ import annotations

from typing import Any

from stretto.recorder.host.options import RecordingOptions
from stretto.recorder.host.unmatched_patterns import MAX_PATTERNS, unmatched_notes


def options(*patterns: str, category: str = "python.functions", **others: Any) -> RecordingOptions:
    target = {"include": [*patterns]}
    return RecordingOptions(categories=[category], target=target, **others)


def test_pattern_that_matched_in_no_process_has_one_note() -> None:
    notes = unmatched_notes(options("a", "b", "c", "b"), {0, 2})
    assert notes == ["no recorded function matches --include b"]


def test_patterns_whose_matches_are_not_reported_have_no_note() -> None:
    many = options(*map(str, range(300)))
    assert len(unmatched_notes(many, set())) == MAX_PATTERNS
    assert unmatched_notes(options("a", attach=7), set()) == []
    assert unmatched_notes(options("a", category="python.gc"), set()) == []
