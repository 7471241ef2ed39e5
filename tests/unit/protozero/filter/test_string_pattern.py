"""The quick and the linear matcher of string rules give equal results in bounded time."""

from __future__ import annotations

import time

import pytest

from stretto.base.errors import ConfigError
from stretto.protozero.filter import string_pattern
from stretto.protozero.filter.string_pattern import StringPattern

PATTERNS = [
    r"B\|\d+\|foo (.*)", "(a+)(b*)", "(?:x(y)?)+", "(é|e)+.*", r"(\w+)=(\w+)", "a{2,3}(b|c)", "()",
    "(c)$", "(c)$\n?", r"(c)[$\]]?\$?", r"([^]$]+)",
]  # fmt: skip
TEXTS = [
    b"",
    b"B|12|foo bar",
    b"aab",
    b"xyxxy",
    "éeé\n".encode(),
    b"key=value",
    b"aac",
    b"\xff\xfe",
    b"aac\n",
    b"c$\n",
    b"c]$c\n",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_quick_and_linear_matchers_find_the_same_matches(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = StringPattern(pattern)
    monkeypatch.setattr(string_pattern, "MAX_STEPS", 1 << 60)
    quick = [(compiled.full_match(text), compiled.find_all(text)) for text in TEXTS]
    monkeypatch.setattr(string_pattern, "MAX_STEPS", -1)
    linear = [(compiled.full_match(text), compiled.find_all(text)) for text in TEXTS]
    assert quick == linear


@pytest.mark.parametrize(
    ("pattern", "size", "is_quick"),
    [
        ("(a)bc", 100_000, True),
        ("(.*)", 90_000, True),
        ("(.*)b(.*)", 300, True),
        ("(.*)b(.*)", 400, False),
        ("(?:a|b)c", 1, True),
        ("(x+x+)+y", 0, False),
        ("(?:a|a)*", 0, False),
        ("(?:ab)*", 1000, True),
        ("a?" * 20, 0, False),
    ],
)
def test_quick_matcher_is_used_only_if_its_number_of_steps_is_bounded(
    pattern: str, size: int, *, is_quick: bool
) -> None:
    assert StringPattern(pattern)._is_quick(size) == is_quick


@pytest.mark.parametrize(
    "pattern", ["(x+x+)+y", "(?:a|a)*b", "(.*)(.*)(.*)(.*)x", "a?" * 40 + "a" * 40]
)
def test_hostile_expressions_are_matched_in_bounded_time(pattern: str) -> None:
    compiled = StringPattern(pattern)
    begin = time.monotonic()
    for text in (b"x" * 1000, b"a" * 1000):
        compiled.full_match(text)
        compiled.find_all(text)
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)a", "(?i)a", "(", "a{2000}"])
def test_expressions_without_a_linear_matcher_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        StringPattern(pattern)
