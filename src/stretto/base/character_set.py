"""Sets of characters in regular expressions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    Range = tuple[str, str]
    """The first and the last character."""

LARGEST: Final = chr(0x10FFFF)


class CharacterSet:
    """A set of characters, given by ranges; `negated`: all characters outside of these ranges."""

    __slots__ = ("_negated", "_ranges", "_singles")

    def __init__(self, ranges: Iterable[Range], *, negated: bool = False) -> None:
        self._singles = frozenset(first for first, last in ranges if first == last)
        self._ranges = tuple({each for each in ranges if each[0] != each[1]})
        self._negated = negated

    def __contains__(self, character: str) -> bool:
        found = character in self._singles or any(
            first <= character <= last for first, last in self._ranges
        )
        return found != self._negated


def complement(ranges: Iterable[Range]) -> list[Range]:
    """Return the ranges of all characters outside of these ranges."""
    out: list[Range] = []
    at = 0
    for first, last in sorted(ranges):
        if ord(first) > at:
            out.append((chr(at), chr(ord(first) - 1)))
        at = max(at, ord(last) + 1)
    if at <= ord(LARGEST):
        out.append((chr(at), LARGEST))
    return out


_DIGIT: Final = [("0", "9")]
_ALPHA: Final = [("A", "Z"), ("a", "z")]
_WORD: Final = [*_DIGIT, *_ALPHA, ("_", "_")]
_SPACE: Final = [("\t", "\r"), (" ", " ")]

CLASS_ESCAPES: Final[dict[str, list[Range]]] = {
    "d": _DIGIT,
    "D": complement(_DIGIT),
    "s": _SPACE,
    "S": complement(_SPACE),
    "w": _WORD,
    "W": complement(_WORD),
}
"""The ranges of each class escape, by the letter after the backslash."""

POSIX_CLASSES: Final[dict[str, list[Range]]] = {
    "alnum": [*_DIGIT, *_ALPHA],
    "alpha": _ALPHA,
    "ascii": [("\0", "\x7f")],
    "blank": [("\t", "\t"), (" ", " ")],
    "cntrl": [("\0", "\x1f"), ("\x7f", "\x7f")],
    "digit": _DIGIT,
    "graph": [("!", "~")],
    "lower": [("a", "z")],
    "print": [(" ", "~")],
    "punct": [("!", "/"), (":", "@"), ("[", "`"), ("{", "~")],
    "space": _SPACE,
    "upper": [("A", "Z")],
    "word": _WORD,
    "xdigit": [*_DIGIT, ("A", "F"), ("a", "f")],
}
"""The ranges of each POSIX class, by its name between `[:` and `:]`."""

WORD: Final = CharacterSet(_WORD)
"""The word characters that `\\b` refers to."""
ANY: Final = CharacterSet([("\n", "\n")], negated=True)
"""The characters that `.` matches: all but the newline."""
