"""Tokens of PerfettoSQL, with their positions in the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.errors import QueryError, located

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+ | --[^\n]* | /\*.*?(?:\*/|\Z))
  | (?P<blob>[xX]'[0-9a-fA-F]*')
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]\n]*\])
  | (?P<number>(?>0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$]))
  | (?P<variable>\$\w+)
  | (?P<macro>[A-Za-z_]\w*!(?!=))
  | (?P<word>[^\W\d]\w*)
  | (?P<operator>->>|->|\|\||<<|>>|<=|>=|<>|!=|==|[-+*/%<>=&|~(),.;?:@])
    """,
    re.VERBOSE | re.DOTALL,
)

_LIKE_NUMBER = re.compile(r"\.?\d[\w$.]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Token(NamedTuple):
    """A token. `kind` is the name of its group in the pattern; `text` is as the user wrote it."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Return the position after the token."""
        return self.start + len(self.text)

    def is_word(self, *words: str) -> bool:
        """Return whether this is one of the keywords, which are given in lower case."""
        return self.kind == "word" and self.text.lower() in words


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text, without spaces and comments.

    Raises:
        QueryError: A character is not part of SQL, or a string has no end.
    """
    tokens, position = [], 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _unreadable(text, position)
        position = found.end()
        if found.lastgroup != "space":
            tokens.append(Token(str(found.lastgroup), found[0], found.start()))
    return tokens


def _unreadable(text: str, position: int) -> QueryError:
    if number := _LIKE_NUMBER.match(text, position):
        return located(f"unrecognized token: {number[0]}", text, position)
    what = "this text has no end" if text[position] in "'\"`[" else "unexpected character"
    return located(f"{what}: {text[position]}", text, position)


def check_encoding(text: str) -> None:
    """Check that a text has no bytes that are not UTF-8; Python keeps them as surrogates.

    Raises:
        QueryError: It has.
    """
    if found := _SURROGATE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        raise QueryError(f"line {line}, column {column}: the SQL is not valid UTF-8 here")


def split(tokens: Sequence[Token], separator: str) -> Iterator[list[Token]]:
    """Yield the parts between separators that are outside parentheses; empty parts too."""
    part: list[Token] = []
    depth = 0
    for token in tokens:
        if token.text == separator and depth == 0:
            yield part
            part = []
            continue
        depth += (token.text == "(") - (token.text == ")")
        part.append(token)
    yield part


def closing(tokens: Sequence[Token], opening: int, text: str) -> int:
    """Return the index of a closing parenthesis.

    Args:
        tokens: The tokens.
        opening: The index of the opening parenthesis.
        text: The text of the tokens, for the error.

    Raises:
        QueryError: The parenthesis is never closed.
    """
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i].text == "(") - (tokens[i].text == ")")
        if depth == 0:
            return i
    raise located("this parenthesis is never closed", text, tokens[opening].start)


def source(text: str, tokens: Sequence[Token]) -> str:
    """Return the text from the first to the last of the tokens, without comments."""
    parts, end = [], tokens[0].start if tokens else 0
    for token in tokens:
        gap = text[end : token.start]
        parts.append(gap if not gap or gap.isspace() else " " if "\n" not in gap else "\n")
        parts.append(token.text)
        end = token.end
    return "".join(parts)
