"""Tokens of the text format, and errors that show their position.

An error has three lines: position and message, the line of the text, and a marker below the
token ::

    config.pbtxt:2:12 error: "duration_ms" wants a uint32, not 'soon'
      duration_ms: soon
                   ^~~~

Rows and columns count characters, from 1. A long line is truncated around the token.
"""

from __future__ import annotations

import re

from stretto.base.errors import ConfigError
from stretto.protozero.text_literals import unescape

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import TypeAlias

    Span: TypeAlias = tuple[int, int]
    """Start and end of a token, in characters."""

# The repeats are possessive (`++`, `*+`), because backtracking over long text needs memory.
_BLANK = re.compile(r"(?:[ \t\n\v\f\r]++|#[^\n]*+)*+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXTENSION = re.compile(r"\[([A-Za-z0-9_.]*)\]")
_NUMBER = re.compile(r"-inf\b|[-0-9.][0-9.]*")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_VALUE_ENDS = frozenset(" \t\n\v\f\r;#}")

MAX_ERRORS = 100
"""Parsing stops after this number: a text in another format has an error in every line."""
_SHOWN_CHARS = 2000
"""Characters shown of a long line, on each side of an error."""


class TextFormatError(ConfigError):
    """A text is malformed; the message lists all errors."""


class Stop(Exception):  # noqa: N818 – it stops the parser, and is not an error itself
    """Raised to stop the parser, because the text after an error can't be parsed."""


class TextSource:
    """A text with the position of the parser, and the errors found so far."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.pos = 0
        self.errors: list[str] = []
        self._name = name

    def skip_blanks(self) -> str:
        """Skip spaces and comments; return the next character, empty at the end."""
        match = _BLANK.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos
        return self.text[self.pos : self.pos + 1]

    def take(self, mark: str) -> bool:
        """Skip `mark` if the text continues with it; return whether it was skipped."""
        found = self.text.startswith(mark, self.pos)
        self.pos += found
        return found

    def take_key(self) -> tuple[str, Span] | None:
        """Return the name of a field, or an extension in brackets; None if there is none."""
        match = _WORD.match(self.text, self.pos) or _EXTENSION.match(self.text, self.pos)
        if match is None:
            return None
        if match[0] == "[]":
            raise self.stop("an extension's name is missing", match.span())
        self.pos = match.end()
        return match[0], match.span()

    def take_word(self) -> tuple[str, Span] | None:
        return self._take_value(_WORD)

    def take_number(self) -> tuple[str, Span] | None:
        return self._take_value(_NUMBER)

    def take_string(self) -> tuple[Span, Span] | None:
        """Skip consecutive string literals.

        Returns:
            (span of all literals, span of the content of the first); None if there is no string.
        """
        begin = self.pos
        first: Span | None = None
        while self.text.startswith('"', self.pos):
            match = _STRING.match(self.text, self.pos)
            if match is None:
                raise self.stop("a string doesn't end", (self.pos, self.pos + 1))
            self.pos = after = match.end()
            first = first or (match.start() + 1, after - 1)
            if self.skip_blanks() != '"':
                self.pos = after
        return ((begin, self.pos), first) if first else None

    def string(self, span: Span) -> bytes:
        """Join and decode the string literals in a span.

        Raises:
            ValueError: a literal has an unknown escape.
        """
        data, (pos, end) = bytearray(), span
        while (match := _STRING.match(self.text, pos, end)) is not None:
            data += unescape(self.text[pos + 1 : match.end() - 1])
            blank = _BLANK.match(self.text, match.end(), end)
            pos = blank.end() if blank else end
        return bytes(data)

    def _take_value(self, pattern: re.Pattern[str]) -> tuple[str, Span] | None:
        match = pattern.match(self.text, self.pos)
        if match is None:
            return None
        self.pos = match.end()
        if self.pos < len(self.text) and self.text[self.pos] not in _VALUE_ENDS:
            raise self.unexpected()
        return match[0], match.span()

    def unexpected(self) -> Stop:
        """Add an error about the next character; return the exception to raise."""
        if self.pos >= len(self.text):
            return self.stop("the text ends within a field", (self.pos, self.pos))
        return self.stop(f"unexpected character {self.text[self.pos]!r}", (self.pos, self.pos + 1))

    def stop(self, complaint: str, span: Span) -> Stop:
        """Add an error; return the exception to raise."""
        self.error(complaint, span)
        return Stop()

    def error(self, complaint: str, span: Span) -> None:
        """Add an error.

        Raises:
            Stop: there are too many errors.
        """
        start, end = span
        begin = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", start)
        row, column = self.text.count("\n", 0, start) + 1, start - begin + 1
        begin = max(begin, start - _SHOWN_CHARS)
        stop = min(len(self.text) if stop < 0 else stop, start + _SHOWN_CHARS)
        line = self.text[begin:stop].rstrip("\r")
        tail = max(min(end, begin + len(line)) - start - 1, 0)
        self.errors.append(
            f"{self._name}:{row}:{column} error: {complaint}\n"
            f"{line}\n{' ' * (start - begin)}^{'~' * tail}\n"
        )
        if len(self.errors) == MAX_ERRORS:
            self.errors.append(f"{self._name}: reading ended after {MAX_ERRORS} errors\n")
            raise Stop
