"""Regular expressions agree with a model and with `re`; matching takes linear time."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stretto.base import regex as regex_module
from stretto.base.errors import ConfigError
from stretto.base.regex import MAX_KNOWN_STEPS, MAX_TEXT, Regex
from stretto.base.regex_program import MAX_PROGRAM
from tests.support.examples import examples

TEXTS = st.lists(
    st.text(st.sampled_from(["a", "b", "_", "7", " ", "-", "."]), max_size=8),
    min_size=1,
    max_size=8,
)
ATOMS = [
    "a", "b", "_", "7", " ", "-", r"\.", ".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S",
    "[ab]", "[^ab]", "[a-b7]", "[]a]", "[^]a]", "[a-]", "[-a]", r"[\w-]", r"[^\d_]", r"[\.b]",
    r"\x61", "^", "$", r"\b", r"\B", "",
]  # fmt: skip
COUNTS = {
    "*": (0, None), "+": (1, None), "?": (0, 1), "*?": (0, None), "+?": (1, None), "??": (0, 1),
    "{2}": (2, 2), "{0}": (0, 0), "{1,}": (1, None), "{0,3}": (0, 3), "{2,3}": (2, 3),
}  # fmt: skip


class Model(NamedTuple):
    """A pattern, and a function that returns the ends of all matches from an offset of a text.

    Python's engine is no model for patterns like `((?:a|)+)+`: it tries all alternatives one after
    the other, which takes minutes. The functions here cache their results and take bounded time.
    """

    pattern: str
    ends: Callable[[str, int], set[int]]

    def full_match(self, text: str) -> bool:
        return len(text) in self.ends(text, 0)


remembered = functools.lru_cache(maxsize=1000)


def atom(pattern: str) -> Model:
    """Return the model of a simple pattern, which has at most one match at each position."""
    compiled = re.compile(pattern, re.ASCII)

    @remembered
    def ends(text: str, at: int) -> set[int]:
        found = compiled.match(text, at)
        return {found.end()} if found else set()

    return Model(pattern, ends)


def sequence(parts: Iterable[Model]) -> Model:
    parts = list(parts)

    @remembered
    def ends(text: str, at: int) -> set[int]:
        reached = {at}
        for part in parts:
            reached = _from_each(part, text, reached)
        return reached

    return Model("".join(part.pattern for part in parts), ends)


def choice(parts: list[Model]) -> Model:
    @remembered
    def ends(text: str, at: int) -> set[int]:
        return {end for part in parts for end in part.ends(text, at)}

    return Model(f"(?:{'|'.join(part.pattern for part in parts)})", ends)


def repeat(opening: str, part: Model, count: str) -> Model:
    least, most = COUNTS[count]

    @remembered
    def ends(text: str, at: int) -> set[int]:
        reached = {at}
        for _ in range(least):
            reached = _from_each(part, text, reached)
        # A part has at most as many non-empty matches as the text has characters.
        for _ in range(len(text) if most is None else most - least):
            reached |= _from_each(part, text, reached)
        return reached

    return Model(f"{opening}{part.pattern}){count}", ends)


def _from_each(part: Model, text: str, starts: set[int]) -> set[int]:
    return {end for start in starts for end in part.ends(text, start)}


def _larger(models: st.SearchStrategy[Model]) -> st.SearchStrategy[Model]:
    return st.one_of(
        st.lists(models, min_size=2, max_size=4).map(sequence),
        st.lists(models, min_size=2, max_size=3).map(choice),
        repeats(models),
    )


def repeats(models: st.SearchStrategy[Model]) -> st.SearchStrategy[Model]:
    return st.builds(repeat, st.sampled_from(["(", "(?:"]), models, st.sampled_from(list(COUNTS)))


SINGLE = st.sampled_from([atom(pattern) for pattern in ATOMS])
MODELS = st.recursive(SINGLE, _larger, max_leaves=12)
SHORT = st.lists(st.one_of(SINGLE, repeats(SINGLE)), max_size=4).map(sequence)
"""Patterns that an engine with backtracking matches in bounded time, too."""


@settings(max_examples=examples(1000), deadline=None)
@given(MODELS, TEXTS)
def test_matches_agree_with_the_model(model: Model, texts: list[str]) -> None:
    try:
        regex = Regex(model.pattern)
    except ConfigError as error:
        # Repetition counts of nested groups multiply, so the pattern may exceed the size limit.
        assume("too large" not in str(error))
        raise
    for text in texts:
        if not text and r"\B" in model.pattern:
            continue  # `\B` matches in an empty text; in Python's engine only from 3.14 on.
        assert regex.full_match(text) == model.full_match(text), (model.pattern, text)


@settings(max_examples=examples(300), deadline=None)
@given(SHORT, TEXTS)
def test_matches_of_short_patterns_agree_with_the_module_re(model: Model, texts: list[str]) -> None:
    regex, reference = Regex(model.pattern), re.compile(model.pattern, re.ASCII)
    for text in texts:
        if not text and r"\B" in model.pattern:
            continue
        expected = reference.fullmatch(text) is not None
        assert regex.full_match(text) == expected == model.full_match(text), (model.pattern, text)


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
        ("^a$", "a", True),
        ("a^b", "ab", False),
        ("a$b", "ab", False),
        (r"a\bb", "ab", False),
        (r"a\Bb", "ab", True),
        ("(?:^|a)*b", "aab", True),
    ],
)
def test_example_patterns_match_the_expected_texts(pattern: str, text: str, matches: bool) -> None:
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
def test_matching_time_is_linear_if_backtracking_is_exponential(
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
