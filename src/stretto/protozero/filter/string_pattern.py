"""The regular expression of a string rule, matched in bounded time for every text.

The author of a config chooses the expression, and any producer the text. `re` is fast, but
backtracks when an alternative fails: the expression `(x+x+)+y` takes 2^n steps for n characters. So
the number of steps is estimated from the expression's tree and the length of the text. If there may
be too many steps, the text is matched in linear time: `base.regex` determines whether the text
matches, and `base.regex_captures` where the groups are.

Expressions are matched over bytes; the linear matchers treat each byte as a character of Latin-1.
"""

from __future__ import annotations

import re

from stretto.base.errors import ConfigError
from stretto.base.regex import Regex
from stretto.base.regex_captures import CaptureRegex
from stretto.base.regex_syntax import Choice, Group, Repeat, Sequence, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from stretto.base.regex_syntax import Node

    Spans: TypeAlias = tuple[tuple[int, int], ...]
    """Begin and end of each group, (-1, -1) if it didn't match; first those of the whole match."""

MAX_STEPS: Final = 100_000
"""With more estimated steps, a millisecond or two, `re` isn't used."""

_ATOM: Final = re.compile(rb"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
"""An escaped character, a class of characters, or `$`."""


class StringPattern:
    """The compiled regular expression of a rule.

    Args:
        pattern: In the common syntax of `re` and `base.regex_syntax`.

    Raises:
        ConfigError: The pattern is malformed, too large, or uses unsupported syntax.
    """

    __slots__ = ("_captures", "_choices", "_loops", "_matcher", "_regex")

    def __init__(self, pattern: str) -> None:
        encoded = pattern.encode("utf-8", "surrogateescape")
        try:
            # An error of this call contains a position in `pattern`. The next call compiles another
            # text.
            re.compile(encoded)
            self._regex = re.compile(_with_strict_end(encoded))
        except (re.error, FutureWarning, RecursionError, OverflowError) as error:
            raise ConfigError(str(error)) from error
        characters = encoded.decode("latin-1")
        self._loops, self._choices = _ambiguity(parse(characters))
        self._matcher = Regex(characters, max_text=1 << 30)
        self._captures = CaptureRegex(characters)

    def full_match(self, text: bytes) -> Spans | None:
        """Match the whole text; None if it doesn't match."""
        if self._is_quick(len(text)):
            match = self._regex.fullmatch(text)
            return None if match is None else match.regs
        characters = text.decode("latin-1")
        if not self._matcher.full_match(characters):
            return None
        found = self._captures.full_match(characters)
        return None if found is None else _spans(found)

    def find_all(self, text: bytes) -> list[Spans]:
        """Return the leftmost matches from left to right; they don't overlap."""
        if self._is_quick(len(text), starts=len(text) + 1):
            return [match.regs for match in self._regex.finditer(text)]
        return [_spans(found) for found in self._captures.find_all(text.decode("latin-1"))]

    def _is_quick(self, size: int, starts: int = 1) -> bool:
        if self._loops < 0:
            return False
        return bool(starts * (size + 1) ** self._loops * 2**self._choices <= MAX_STEPS)


def _with_strict_end(pattern: bytes) -> bytes:
    r"""Replace `$` by `\Z`: in `re`, `$` also matches before a newline at the end."""
    return _ATOM.sub(lambda atom: rb"\Z" if atom[0] == b"$" else atom[0], pattern)


def _spans(captures: tuple[int, ...]) -> Spans:
    return tuple(zip(captures[::2], captures[1::2], strict=True))


def _ambiguity(node: Node) -> tuple[int, int]:
    """Return the numbers of loops and of alternatives in an expression.

    `re` backtracks: it may try each loop with each number of repetitions, and each alternative. For
    a text of `size` characters it tries at most size ** loops * 2 ** alternatives paths. This bound
    doesn't hold if a loop contains another loop or alternatives: then the number of loops is -1.
    """
    if isinstance(node, Group):
        return _ambiguity(node.part)
    if isinstance(node, Repeat):
        return _ambiguity_of_repeat(node)
    if not isinstance(node, Sequence | Choice):
        return 0, 0
    counts = [_ambiguity(part) for part in node.parts]
    if any(loops < 0 for loops, _ in counts):
        return -1, 0
    own = len(node.parts) - 1 if isinstance(node, Choice) else 0
    return sum(loops for loops, _ in counts), own + sum(choices for _, choices in counts)


def _ambiguity_of_repeat(node: Repeat) -> tuple[int, int]:
    inner = _ambiguity(node.part)
    if (node.least, node.most) == (0, 1):
        return inner if inner[0] < 0 else (inner[0], inner[1] + 1)
    if inner != (0, 0):
        return -1, 0
    return int(node.least != node.most), 0
