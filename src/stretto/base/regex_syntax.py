r"""The syntax of regular expressions, and their syntax trees.

::

    a  \.  \t  \x41     a character            ab  a|b  (a)  (?:a)  (?P<name>a)
    .  [a-f]  [^ab]     one of a set           a*  a+  a?  a{2}  a{2,}  a{2,9}
    \d \w \s \D \W \S   of ASCII               *? +? ?? {2,9}? try fewer first
    [[:alpha:]]         POSIX classes          ^  $  \b  \B    places in the text

This is the common syntax of RE2, PCRE2 and ECMAScript. Everything else is refused: flags, and
back references (`\1`) and lookaround (`(?=a)`), which can't be matched in linear time. Nesting
and repeat counts are bounded.
"""

from __future__ import annotations

import re

from stretto.base.character_set import (
    ANY,
    CLASS_ESCAPES,
    LARGEST,
    POSIX_CLASSES,
    CharacterSet,
    complement,
)
from stretto.base.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from stretto.base.character_set import Range

    Node: TypeAlias = "CharacterSet | Place | Sequence | Choice | Repeat | Group"

MAX_NESTING: Final = 100
MAX_REPEATS: Final = 1000
"""The largest count in braces, as in RE2."""

BEGIN: Final = "^"
END: Final = "$"
WORD_BOUNDARY: Final = r"\b"
NO_WORD_BOUNDARY: Final = r"\B"

_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_COUNTS: Final = re.compile(r"\{(\d{1,20})(,?)(\d{0,20})\}", re.ASCII)
_GROUP: Final = re.compile(r"\((?:\?:|\?P?<[A-Za-z_]\w{0,99}>|(?!\?))", re.ASCII)
_HEX: Final = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}")
_POSIX: Final = re.compile(r"\[:(\^?)(\w{1,20}):\]", re.ASCII)


class Place:
    """A condition on the place in the text: BEGIN, END, WORD_BOUNDARY, NO_WORD_BOUNDARY."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Sequence:
    """Nodes that match one after the other."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Node]) -> None:
        self.parts = parts


class Choice:
    """Alternatives, one of which matches."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Node]) -> None:
        self.parts = parts


class Repeat:
    """A repetition, at least `least` and at most `most` times; None: no limit.

    A lazy repetition tries fewer repetitions first, which changes only the captures of a match.
    """

    __slots__ = ("lazy", "least", "most", "part")

    def __init__(self, part: Node, least: int, most: int | None, *, lazy: bool = False) -> None:
        self.part = part
        self.least = least
        self.most = most
        self.lazy = lazy


class Group:
    """A group whose text is captured; groups are numbered from 1 by their opening brackets."""

    __slots__ = ("number", "part")

    def __init__(self, part: Node, number: int) -> None:
        self.part = part
        self.number = number


def parse(pattern: str) -> Node:
    """Parse a regular expression.

    Raises:
        ConfigError: The expression is malformed, or uses unsupported syntax; the message names the
            offset.
    """
    parser = _Parser(pattern)
    node = parser.choice(0)
    if not parser.at_end:
        raise parser.error("')' without '('")
    return node


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._pattern)

    def error(self, what: str) -> ConfigError:
        return ConfigError(f"{what} at offset {self._at}")

    def _next_is(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if not self._next_is(text):
            return False
        self._at += len(text)
        return True

    def _take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._pattern, self._at)
        if found:
            self._at = found.end()
        return found

    def _next(self) -> str:
        if self.at_end:
            raise self.error("the expression ends too early,")
        self._at += 1
        return self._pattern[self._at - 1]

    def choice(self, depth: int) -> Node:
        parts = [self._sequence(depth)]
        while self._take("|"):
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Choice(parts)

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while not (self.at_end or self._next_is("|") or self._next_is(")")):
            parts.append(self._repeated(self._atom(depth)))
        return parts[0] if len(parts) == 1 else Sequence(parts)

    def _repeated(self, part: Node) -> Node:
        counts = self._counts()
        if counts is None:
            return part
        lazy = self._take("?")
        if not lazy and self._next_is("+"):
            raise self.error("a possessive '+' isn't supported,")
        if any(map(self._next_is, "*+?")) or _COUNTS.match(self._pattern, self._at):
            raise self.error("a second count in a row")
        return Repeat(part, *counts, lazy=lazy)

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return counts
        if not self._next_is("{"):
            return None
        found = self._take_match(_COUNTS)
        if found is None:
            raise self.error("'{' that begins no count: write '\\{' for the character,")
        least = int(found[1])
        most = int(found[3]) if found[3] else None if found[2] else least
        if max(least, most or 0) > MAX_REPEATS:
            raise self.error(f"a count of more than {MAX_REPEATS} before")
        if most is not None and most < least:
            raise self.error("a count whose maximum is below its minimum before")
        return least, most

    def _atom(self, depth: int) -> Node:
        if self._next_is("("):
            return self._group(depth)
        if self._take("["):
            return self._set()
        if any(map(self._next_is, "*+?{")):
            raise self.error("nothing to repeat")
        character = self._next()
        if character == "\\":
            return self._escaped()
        if character == ".":
            return ANY
        if character in (BEGIN, END):
            return Place(character)
        return _single(character)

    def _group(self, depth: int) -> Node:
        if depth >= MAX_NESTING:
            raise self.error(f"groups nest deeper than {MAX_NESTING}")
        opening = self._take_match(_GROUP)
        if opening is None:
            raise self.error("a group that begins with '(?' and isn't '(?:' or '(?P<name>'")
        captured = opening[0] != "(?:"
        self._groups += captured
        number = self._groups
        node = self.choice(depth + 1)
        if not self._take(")"):
            raise self.error("')' is missing")
        return Group(node, number) if captured else node

    def _escaped(self) -> Node:
        for kind in (WORD_BOUNDARY, NO_WORD_BOUNDARY):
            if self._take(kind[1:]):
                return Place(kind)
        ranges = self._class_escape()
        return CharacterSet(ranges) if ranges is not None else _single(self._character_escape())

    def _class_escape(self) -> list[Range] | None:
        ranges = None if self.at_end else CLASS_ESCAPES.get(self._pattern[self._at])
        self._at += ranges is not None
        return ranges

    def _character_escape(self) -> str:
        """Parse a character escape after its backslash; return the character."""
        found = self._take_match(_HEX)
        if found:
            code = int(found[1] or found[2], 16)
            if code > ord(LARGEST):
                raise self.error("no such character before")
            return chr(code)
        character = self._next()
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character.isalnum():
            raise self.error(f"the escape '\\{character}' isn't supported,")
        return character

    def _set(self) -> CharacterSet:
        negated = self._take("^")
        ranges: list[Range] = []
        first = True
        while first or not self._next_is("]"):
            ranges += self._element()
            first = False
        self._at += 1
        return CharacterSet(ranges, negated=negated)

    def _element(self) -> list[Range]:
        """Parse an element of a set: a class, a range or a character."""
        posix = self._take_match(_POSIX)
        if posix:
            return self._posix_class(posix[2], negated=bool(posix[1]))
        if self._next_is("\\"):
            self._at += 1
            ranges = self._class_escape()
            if ranges is not None:
                return ranges
            self._at -= 1
        low = self._set_character()
        if not self._next_is("-") or self._pattern[self._at + 1 : self._at + 2] in ("]", ""):
            return [(low, low)]
        self._at += 1
        high = self._set_character()
        if high < low:
            raise self.error("a range whose end is before its beginning,")
        return [(low, high)]

    def _set_character(self) -> str:
        character = self._next()
        if character == "[" and (self._next_is(".") or self._next_is("=") or self._next_is(":")):
            raise self.error("a collating element or a malformed class")
        if character != "\\":
            return character
        return "\b" if self._take("b") else self._character_escape()

    def _posix_class(self, name: str, *, negated: bool) -> list[Range]:
        ranges = POSIX_CLASSES.get(name)
        if ranges is None:
            raise self.error(f"no class is called [:{name}:],")
        return complement(ranges) if negated else ranges


def _single(character: str) -> CharacterSet:
    return CharacterSet([(character, character)])
