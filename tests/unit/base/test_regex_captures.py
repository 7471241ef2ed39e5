"""Groups captured in linear time equal those that Python's engine captures."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base.regex_captures import CaptureRegex
from tests.support.examples import examples

ATOMS = st.sampled_from(
    ["a", "b", "_", "(a)", "(b)", "(?:ab)", ".", "[ab]", r"\w", r"\b", "^", "$"]
)
COUNTS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}"])
TEXTS = st.text(st.sampled_from(["a", "b", "_"]), max_size=8)


def _larger(patterns: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Parts that match an empty text aren't repeated, because engines capture them differently.
    repeated = st.tuples(st.sampled_from(["a", "[ab]", "(a)", "(?:ab)", "(a|b)"]), COUNTS)
    return st.one_of(
        st.tuples(patterns, patterns).map("".join),
        st.tuples(patterns, patterns).map(lambda each: f"({each[0]}|{each[1]})"),
        repeated.map("".join),
    )


PATTERNS = st.recursive(ATOMS, _larger, max_leaves=6)


def _spans(match: re.Match[str]) -> tuple[int, ...]:
    return tuple(place for span in match.regs for place in span)


@settings(max_examples=examples(1000), deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=5))
def test_full_matches_have_the_captures_of_the_module_re(pattern: str, texts: list[str]) -> None:
    regex, reference = CaptureRegex(pattern), re.compile(pattern, re.ASCII)
    for text in texts:
        match = reference.fullmatch(text)
        assert regex.full_match(text) == (match and _spans(match)), (pattern, text)


@settings(max_examples=examples(1000), deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=5))
def test_all_matches_equal_those_of_the_module_re(pattern: str, texts: list[str]) -> None:
    regex, reference = CaptureRegex(pattern), re.compile(pattern, re.ASCII)
    for text in texts:
        expected = [_spans(match) for match in reference.finditer(text)]
        assert list(regex.find_all(text)) == expected, (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "captures"),
    [
        ("(a+)(a*)b", "aaab", (0, 4, 0, 3, 3, 3)),
        ("(a+?)(a*)b", "aaab", (0, 4, 0, 1, 1, 3)),
        ("(a|ab)(c|bcd)?", "abcd", (0, 4, 0, 1, 1, 4)),
        ("(a)|(b)", "b", (0, 1, -1, -1, 0, 1)),
        ("(?:(a)|b)*", "ab", (0, 2, 0, 1)),
        (r"B\|\d+\|foo (.*)", "B|12|foo x y", (0, 12, 9, 12)),
        ("(x+x+)+y", "xxxxy", (0, 5, 0, 4)),
        ("", "", (0, 0)),
    ],
)
def test_groups_capture_the_expected_texts(
    pattern: str, text: str, captures: tuple[int, ...]
) -> None:
    assert CaptureRegex(pattern).full_match(text) == captures
    assert CaptureRegex(pattern).full_match(text + "\n") is None


def test_pattern_with_exponential_backtracking_is_matched_in_linear_time() -> None:
    begin = time.monotonic()
    assert CaptureRegex("(x+x+)+y").full_match("x" * 2000) is None
    assert CaptureRegex("(x+x+)+y").full_match("x" * 2000 + "y") is not None
    assert time.monotonic() - begin < 20


def test_text_that_remains_at_the_limit_of_scans_becomes_one_match() -> None:
    text = "a" * 2000
    found = list(CaptureRegex("(a).*b|(a)").find_all(text))
    assert len(found) < 100
    assert found[-1] == (found[-2][1], 2000) * 3
