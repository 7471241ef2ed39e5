from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.protozero.text_literals import escape, unescape

EVERY_BYTE = bytes(range(256))
SLICE = 1 << 16


@given(st.binary())
def test_any_bytes_are_unchanged_after_escape_and_unescape(data: bytes) -> None:
    for text in (False, True):
        literal = escape(data, text=text)
        assert (literal[0], literal[-1]) == ('"', '"')
        assert unescape(literal[1:-1]) == data
    assert escape(data, text=False).isascii()


@pytest.mark.parametrize("text", [False, True])
def test_bytes_across_slice_boundaries_are_unchanged_after_escape_and_unescape(text: bool) -> None:
    for data in (EVERY_BYTE, EVERY_BYTE * 1000, b"x" * (SLICE - 1) + b"\xff" + b"\\" * SLICE):
        assert unescape(escape(data, text=text)[1:-1]) == data


def test_printable_characters_of_text_are_not_escaped() -> None:
    data = "é→\u2028\x85\U0001f600".encode() + b"\xff"
    assert escape(data, text=True) == '"é→\\342\\200\\250\\302\\205\U0001f600\\377"'


@pytest.mark.parametrize(
    ("literal", "data"),
    [
        (r"\\?", rb"\?"),
        (r"\?\\\?", rb"?\?"),
        (r"\\134", rb"\134"),
        (r"\\\\n", rb"\\n"),
        (r"\\\n", b"\\\n"),
        (r"\0000", b"\x000"),
        (r"\'\"\a\b\f\n\r\t\v", b"'\"\a\b\f\n\r\t\v"),
        ("é\udcff\\377", b"\xc3\xa9\xff\xff"),
        ("two\nlines", b"two\nlines"),
    ],
)
def test_escape_sequences_are_unescaped(literal: str, data: bytes) -> None:
    assert unescape(literal) == data


@pytest.mark.parametrize(
    ("literal", "complaint"),
    [
        (r"\x41", r"\\x is no escape"),
        (r"\\\u0041", r"\\u is no escape"),
        (r"\N{DASH}", r"\\N is no escape"),
        ("\\\n", "is no escape"),
        ("\\é", "\\\\é is no escape"),
        (r"\12", "exactly three octal digits"),
        (r"\128", "exactly three octal digits"),
        (r"\8", "exactly three octal digits"),
        (r"\777", r"\\777 is more than a byte"),
    ],
)
def test_invalid_escape_sequence_is_an_error(literal: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        unescape(literal)
