r"""String literals of the text format: escape bytes and unescape literals.

    escape(b"\n\xff", text=False)      # "\n\377", with the quotes
    unescape(r"\n\377")                # b"\n\xff"

Both functions process the whole string at once, in memory for a few copies of it.
"""

from __future__ import annotations

import re

_SLICE_CHARS = 1 << 16
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BACKSLASHES, _OCTAL_BACKSLASH = rb"\\", rb"\134"
_WRONG_ESCAPE = re.compile(rb"""\\(?![0-3][0-7]{2}|[\\'"?abfnrtv])""")
_OCTAL = re.compile(rb"\\[0-7]{3}")


def escape(data: bytes, *, text: bool) -> str:
    """Return a literal for bytes; with `text`, non-ASCII characters are not escaped."""
    if text:
        return _escaped(data.decode("utf-8", "surrogateescape"), _TEXT)
    return _escaped(data.decode("latin-1"), _BYTES)


def _escaped(text: str, escapes: dict[str, str]) -> str:
    """Escape in slices: a list of all characters needs eight times the memory of the text."""
    starts = range(0, len(text), _SLICE_CHARS)
    slices = (text[at : at + _SLICE_CHARS] for at in starts)
    return "".join(('"', *("".join(map(escapes.__getitem__, each)) for each in slices), '"'))


def unescape(literal: str) -> bytes:
    """Decode the content of a literal, without its quotes.

    Raises:
        ValueError: an escape is unknown, or isn't a number of three octal digits up to 377.
    """
    data = literal.encode("utf-8", "surrogateescape")
    if b"\\" not in data:
        return data
    # After this replacement, each backslash begins an escape.
    data = data.replace(_BACKSLASHES, _OCTAL_BACKSLASH)
    wrong = _WRONG_ESCAPE.search(data)
    if wrong is not None:
        raise ValueError(_complaint(data, wrong.start()))
    # Python supports all escapes of the format except `\?`, which is replaced first.
    return data.replace(rb"\?", b"?").decode("unicode_escape").encode("latin-1")


def _complaint(data: bytes, at: int) -> str:
    octal = _OCTAL.match(data, at)
    if octal is not None:
        return f"{octal[0].decode()} is more than a byte, \\377 at most"
    shown = data[at + 1 : at + 5].decode("utf-8", "replace")[:1]
    if shown.isdigit():
        return "an escape by number has exactly three octal digits, as \\012"
    return f"\\{shown} is no escape; there are \\\\ \\' \\\" \\? \\a \\b \\f \\n \\r \\t \\v \\NNN"


class _TextEscapes(dict[str, str]):
    """Escapes by character: a dict for ASCII, computed for other characters."""

    def __missing__(self, char: str) -> str:
        return char if char.isprintable() else _octal(char.encode("utf-8", "surrogateescape"))


def _octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)


def _byte_escape(char: str) -> str:
    plain = char.isascii() and char.isprintable()
    return _SHORT.get(char) or (char if plain else _octal(char.encode("latin-1")))


_BYTES = {chr(byte): _byte_escape(chr(byte)) for byte in range(256)}
_TEXT = _TextEscapes({chr(byte): _byte_escape(chr(byte)) for byte in range(128)})
