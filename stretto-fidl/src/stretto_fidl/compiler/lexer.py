"""Splits text into tokens. Both syntaxes have the same tokens."""

from __future__ import annotations

import re

from stretto_fidl.compiler.source import SourceFile, Span
from stretto_fidl.compiler.tokens import DOC, END, NAME, NUMBER, STRING, Token

_WORDS = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<doc>///(?!/)[^\n]*)
    | (?P<comment>//[^\n]*)
    | (?P<name>[A-Za-z][A-Za-z0-9_]*)
    | (?P<arrow>->)
    | (?P<number>[-0-9][-0-9A-Za-z_.]*)
    | (?P<string>"(?:\\.|[^"\\\n])*")
    | (?P<punctuation>[][(){}<>@.,;:?=&|])
    """,
    re.VERBOSE,
)

_ESCAPE = re.compile(r"\\(u\{(?P<hex>[^}]*)\}|(?P<one>.)|$)", re.DOTALL)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}
_LARGEST_CODE_POINT = 0x10FFFF
MAX_FILE_LENGTH = 16 << 20
"""The maximum number of characters of one file."""


def lex(source: SourceFile) -> list[Token]:
    """Return the tokens of a file; the last one is the end of the file.

    Raises:
        CompileError: A character belongs to no token, or the file has more than
            `MAX_FILE_LENGTH` characters.
    """
    text, tokens, position = source.text, [], 0
    if len(text) > MAX_FILE_LENGTH:
        raise Span(source, 0, 0).error(f"the file is longer than {MAX_FILE_LENGTH} characters")
    while position < len(text):
        match = _WORDS.match(text, position)
        if match is None:
            raise _stray(source, position)
        token = _token(source, match)
        if token is not None:
            tokens.append(token)
        position = match.end()
    tokens.append(Token(END, "", Span(source, len(text), len(text))))
    return tokens


def _token(source: SourceFile, match: re.Match[str]) -> Token | None:
    kind, text = match.lastgroup, match.group()
    span = Span(source, match.start(), match.end())
    if kind in ("space", "comment"):
        return None
    if kind == "name":
        if text.endswith("_"):
            raise span.error(f"invalid identifier `{text}`: it may not end with an underscore")
        return Token(NAME, text, span)
    if kind in ("punctuation", "arrow"):
        return Token(text, text, span)
    if kind == "string":
        unescape(text, span)
        return Token(STRING, text, span)
    return Token({"doc": DOC, "number": NUMBER}[str(kind)], text, span)


def _stray(source: SourceFile, position: int) -> Exception:
    character = source.text[position]
    place = Span(source, position, position + 1)
    if character == '"':
        return place.error("this string has no closing quote on its line")
    return place.error(f"invalid character {character!r}: remove it")


def unescape(text: str, span: Span) -> str:
    """Return the value of a string literal.

    Args:
        text: The literal with its quotes.
        span: The place of the literal.

    Raises:
        CompileError: An escape sequence is wrong.
    """
    inside = text[1:-1]
    for offset, character in enumerate(inside):
        if character < " " or character == "\x7f":
            place = Span(span.source, span.start + 1 + offset, span.start + 2 + offset)
            raise place.error(
                f"control character {character!r} in a string: write it as an escape sequence"
            )
    return _ESCAPE.sub(lambda match: _unescaped(match, span), inside)


def _unescaped(match: re.Match[str], span: Span) -> str:
    start = span.start + 1 + match.start()
    place = Span(span.source, start, start + len(match.group()))
    if match["one"] in _SIMPLE:
        return _SIMPLE[match["one"]]
    digits = match["hex"]
    if digits is None:
        raise place.error(
            f"invalid escape sequence `{match.group()}`: "
            r"there are \n, \r, \t, \", \\ and \u{X}, X up to six hexadecimal digits"
        )
    if not re.fullmatch("[0-9A-Fa-f]{1,6}", digits):
        raise place.error(
            f"`{match.group()}` must have one to six hexadecimal digits in its braces"
        )
    code_point = int(digits, 16)
    if code_point > _LARGEST_CODE_POINT or 0xD800 <= code_point < 0xE000:
        raise place.error(
            f"{digits} isn't a code point: the largest is 10FFFF, and D800 to DFFF aren't valid"
        )
    return chr(code_point)
