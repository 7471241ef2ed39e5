"""Text in the form of .pbtxt files: its tokens, and errors that show where they are.

An error has three lines: position and complaint, the line of the text, and a
guide that points at the token ::

    config.pbtxt:2:12 error: "duration_ms" wants a uint32, not 'soon'
      duration_ms: soon
                   ^~~~

Rows and columns count characters, from 1.
"""

from __future__ import annotations

import re

from stretto.base.errors import ConfigError

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from typing import TypeAlias

    Span: TypeAlias = tuple[int, int]
    """Where a token begins and ends."""

_BLANK = re.compile(r"(?:[ \t\n\v\f\r]+|#[^\n]*)*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXTENSION = re.compile(r"\[([A-Za-z0-9_.]*)\]")
_NUMBER = re.compile(r"-inf\b|[-0-9.][0-9.]*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_VALUE_ENDS = frozenset(" \t\n\v\f\r;#}")

_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))", re.DOTALL)
_ESCAPED = {
    b"\\": b"\\",
    b"'": b"'",
    b'"': b'"',
    b"?": b"?",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class TextFormatError(ConfigError):
    """A text form is malformed; the message shows every place."""


class Stop(Exception):  # noqa: N818 – it ends the reading, and is no error itself
    """After this error the rest of the text can't be understood."""


class TextSource:
    """A text that is read front to back, and the errors found in it."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.pos = 0
        self.errors: list[str] = []
        self._name = name

    def skip_blanks(self) -> str:
        """Go past spaces and comments; returns the character there, empty at the end."""
        match = _BLANK.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos
        return self.text[self.pos : self.pos + 1]

    def take(self, mark: str) -> bool:
        """Go past a character if it is the next one."""
        found = self.text.startswith(mark, self.pos)
        self.pos += found
        return found

    def take_key(self) -> tuple[str, Span] | None:
        """A field's name, an extension's in brackets, or None if there is none here."""
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

    def take_string(self) -> tuple[list[str], Span] | None:
        """The literals that follow each other, still escaped; None if there is no string here."""
        parts: list[str] = []
        span = (self.pos, self.pos)
        while self.text.startswith('"', self.pos):
            match = _STRING.match(self.text, self.pos)
            if match is None:
                raise self.stop("a string doesn't end", (self.pos, self.pos + 1))
            span = span if parts else match.span(1)
            parts.append(match[1])
            self.pos = match.end()
            after = self.pos
            if self.skip_blanks() != '"':
                self.pos = after
        return (parts, span) if parts else None

    def _take_value(self, pattern: re.Pattern[str]) -> tuple[str, Span] | None:
        match = pattern.match(self.text, self.pos)
        if match is None:
            return None
        self.pos = match.end()
        if self.pos < len(self.text) and self.text[self.pos] not in _VALUE_ENDS:
            raise self.unexpected()
        return match[0], match.span()

    def unexpected(self) -> Stop:
        """Complain of the character here."""
        if self.pos >= len(self.text):
            return self.stop("the text ends within a field", (self.pos, self.pos))
        return self.stop(f"unexpected character {self.text[self.pos]!r}", (self.pos, self.pos + 1))

    def stop(self, complaint: str, span: Span) -> Stop:
        """Note an error, and give what to raise."""
        self.error(complaint, span)
        return Stop()

    def error(self, complaint: str, span: Span) -> None:
        """Note an error and go on."""
        start, end = span
        begin = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", start)
        line = self.text[begin : len(self.text) if stop < 0 else stop].rstrip("\r")
        row, column = self.text.count("\n", 0, start) + 1, start - begin + 1
        tail = max(min(end, begin + len(line)) - start - 1, 0)
        self.errors.append(
            f"{self._name}:{row}:{column} error: {complaint}\n"
            f"{line}\n{' ' * (column - 1)}^{'~' * tail}\n"
        )


def unescape(parts: list[str]) -> bytes:
    """The bytes that literals stand for.

    Raises:
        ValueError: an escape is unknown, or no number of three octal digits up to 377.
    """
    return b"".join(
        _ESCAPE.sub(_unescape_one, part.encode("utf-8", "surrogateescape")) for part in parts
    )


def _unescape_one(match: re.Match[bytes]) -> bytes:
    octal, char = match.groups()
    if octal is not None:
        if octal > b"377":
            raise ValueError(f"\\{octal.decode()} is more than a byte, \\377 at most")
        return bytes((int(octal, 8),))
    if char in _ESCAPED:
        return _ESCAPED[char]
    if char.isdigit():
        raise ValueError("an escape by number has exactly three octal digits, as \\012")
    shown = char.decode("utf-8", "replace")
    raise ValueError(
        f"\\{shown} is no escape; there are \\\\ \\' \\\" \\? \\a \\b \\f \\n \\r \\t \\v \\NNN"
    )


def escape(data: bytes, *, text: bool) -> str:
    """A literal that stands for bytes; as `text`, characters beyond ASCII stay as they are."""
    if text:
        decoded = data.decode("utf-8", "surrogateescape")
        return '"' + "".join(_escape_char(char) for char in decoded) + '"'
    return '"' + "".join(_escape_char(chr(byte), ascii_only=True) for byte in data) + '"'


def _escape_char(char: str, *, ascii_only: bool = False) -> str:
    short = _SHORT.get(char)
    if short is not None:
        return short
    if char.isprintable() and (char.isascii() or not ascii_only):
        return char
    data = char.encode("latin-1") if ascii_only else char.encode("utf-8", "surrogateescape")
    return "".join(f"\\{byte:03o}" for byte in data)
