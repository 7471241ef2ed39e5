"""Regular expressions with linear time: agreement with Python's `re`, and limits."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base import regex as regex_module
from stretto.base.errors import ConfigError
from stretto.base.regex import MAX_KNOWN_STEPS, MAX_PROGRAM, MAX_TEXT, Regex
from tests.support.examples import examples

CHARACTERS = st.sampled_from(["a", "b", "_", "7", " ", "-", "."])
ATOMS = st.sampled_from(
    [
        "a", "b", "_", "7", " ", "-", r"\.", ".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S",
        "[ab]", "[^ab]", "[a-b7]", "[]a]", "[^]a]", "[a-]", "[-a]", r"[\w-]", r"[^\d_]", r"[\.b]",
        r"\x61", "^", "$", r"\b", r"\B", "",
    ]
)  # fmt: skip
COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{0}", "{1,}", "{0,3}", "{2,3}", "*?", "+?", "??"])


def _larger(patterns: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.tuples(st.sampled_from(["(", "(?:"]), patterns).map(
        lambda each: "".join(each) + ")"
    )
    return st.one_of(
        st.lists(patterns, min_size=2, max_size=4).map("".join),
        st.lists(patterns, min_size=2, max_size=3).map(lambda each: f"(?:{'|'.join(each)})"),
        st.tuples(groups, COUNTS).map("".join),
    )


PATTERNS = st.recursive(ATOMS, _larger, max_leaves=12)


@settings(max_examples=examples(1000), deadline=None)
@given(PATTERNS, st.lists(st.text(CHARACTERS, max_size=8), min_size=1, max_size=8))
def test_matches_agree_with_pythons_engine(pattern: str, texts: list[str]) -> None:
    regex, reference = Regex(pattern), re.compile(pattern, re.ASCII)
    for text in texts:
        if not text and r"\B" in pattern:
            continue  # Python matches it in an empty text from 3.14 on; other engines always do.
        assert regex.full_match(text) == (reference.fullmatch(text) is not None), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("com[.]example[.].*", "com.example.app", True),
        ("a|b|", "", True),
        ("[[:alpha:]]+[[:digit:]]", "abc7", True),
        ("[^[:alpha:]]", "7", True),
        ("[[:^digit:]_]", "7", False),
        (r"\x{1F600}", "\U0001f600", True),
        ("[α-ω]+", "λογος", True),
        (".", "\n", False),
        (r"\t\n\x41", "\t\nA", True),
        ("(?P<name>a)(?<other>b)", "ab", True),
        (r"[\]]", "]", True),
        (r"[\b]", "\b", True),
        ("a{1000}", "a" * 1000, False),
        ("a{200}", "a" * 200, True),
        ("a.*", "a" + "b" * MAX_TEXT, False),
    ],
)
def test_example_patterns_match_as_listed(pattern: str, text: str, matches: bool) -> None:
    assert Regex(pattern).full_match(text) == matches


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "[", "[a", "a{", "a{2", "a{x}", "*", "+a", "a**", "a{2}{3}", "a*+",
        "a{3,2}", "[b-a]", "[[:no:]]", "[[.a.]]", "[[=a=]]", "\\", r"\1", r"\k", "(?=a)", "(?!a)",
        "(?i)a", "(?<=a)", r"\x{110000}", "(?P<n", "a{99999999999}", "a{1001}", "a{1,1001}",
        "(a{1000}){1000}", "((((a{9}){99}){99}){99}){99}", "(" * 4000 + ")" * 4000,
        "(" * 100_000, "[" * 100_000, "a" * (MAX_PROGRAM + 1), "{" + "9" * 100_000 + "}",
        "a{" + "9" * 100_000 + "}",
    ],
)  # fmt: skip
def test_malformed_and_too_large_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        Regex(pattern)


@settings(max_examples=examples(500), deadline=None)
@given(st.text(st.sampled_from("ab()[]{}|*+?.\\^$-,:09dxwP<>"), max_size=30))
def test_any_pattern_is_compiled_or_refused(pattern: str) -> None:
    try:
        Regex(pattern).full_match("ab09")
    except ConfigError:
        pass


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "(a?){500}a{500}", "(.*)*(.*)*x", r"(\w*\b)*!"]
)
def test_time_is_linear_where_backtracking_is_exponential(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    regex = Regex(pattern)
    places: list[int] = []

    def counted(self: Regex, state: regex_module.State, following: str) -> set[int]:
        reached = reach(self, state, following)
        places.append(len(reached))
        return reached

    reach = Regex._reach
    monkeypatch.setattr(Regex, "_reach", counted)
    text = "a" * (MAX_TEXT - 1) + "!"
    regex.full_match(text)
    assert sum(places) <= (len(text) + 1) * regex.size


def test_cache_of_patterns_is_bounded() -> None:
    regex = Regex(".*")
    for start in range(0, 4 * MAX_KNOWN_STEPS, 100):
        assert regex.full_match("".join(map(chr, range(0x100 + start, 0x164 + start))))
        assert len(regex._known) <= MAX_KNOWN_STEPS
