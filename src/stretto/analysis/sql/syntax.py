"""Errors of syntax. SQLite decides what is one, with both engines.

DuckDB and sqlglot accept more than the trace processor does. SQLite says which word it didn't
expect, but not where: the place is found by parsing the beginnings of the statement. The mistake is
often a word before: the words nearby are replaced by similar keywords, as long as that helps.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from contextlib import closing
from difflib import get_close_matches
from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import PlacedError, located
from stretto.analysis.sql.macros import expand
from stretto.analysis.sql.statements import tokens_of
from stretto.analysis.sql.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stretto.analysis.sql.macros import Macro
    from stretto.analysis.sql.statements import Statement
    from stretto.analysis.sql.tokens import Token

KEYWORDS = (
    "all and as asc between by case cast collate create cross current delete desc distinct drop "
    "else end escape except exists explain filter first following from full glob group having if "
    "in index inner insert intersect into is join last left like limit materialized natural not "
    "null nulls offset on or order outer over partition perfetto preceding range recursive replace "
    "right row rows select set table temp then unbounded union using values view when where window "
    "with"
).split()
"""The words of SQLite's grammar that queries use."""

_CHECKED = frozenset(("sql", "table", "view", "function", "table function"))
"""The kinds of statements whose text is SQL as SQLite reads it."""
_WITH_JOINS = (3, 39)
"""The first version of SQLite that knows every join, and `is distinct from`."""
_WITH_ORDERED_AGGREGATES = (3, 44)
"""The first version of SQLite that knows `group_concat(x order by y)`, as the trace processor."""
_INCOMPLETE = "incomplete input"
_COMPLAINTS = (_INCOMPLETE, "syntax error", "unrecognized token")
"""Parts of what SQLite says about syntax."""
_REACH = 3
"""The mistake is at most so many words before the one that was not expected."""
_SIMILARITY = 0.6
_OPERANDS = ("word", "quoted", "string", "number")


def check_syntax(text: str, statement: Statement, macros: Mapping[str, Macro]) -> None:
    """Check the syntax of a statement.

    Args:
        text: The user's text.
        statement: One of its statements.
        macros: The macros by name.

    Raises:
        QueryError: The syntax is wrong, or a macro is. The error shows the place.
    """
    if statement.kind not in _CHECKED or sqlite3.sqlite_version_info < _WITH_JOINS:
        return
    expanded = _expanded(text, statement, macros)
    if _complaint(expanded) is None:
        return
    tokens = list(_without_macros(tokens_of(statement, text)))
    at = _unexpected(tokens)
    if at is None:  # The mistake is in the text of a macro.
        tokens = [token._replace(start=statement.start) for token in tokenize(expanded)]
        at = _unexpected(tokens)
    if at is None or _is_newer(tokens, at):
        return
    place, problem = _problem(tokens, at)
    raise located(problem, text, tokens[place].start)


def _expanded(text: str, statement: Statement, macros: Mapping[str, Macro]) -> str:
    """Return a statement with its macros expanded; their errors show the place in the text."""
    try:
        return expand(statement.text, macros)
    except PlacedError as error:
        begin = max(text.find(statement.text, statement.start), 0)
        raise located(error.problem, text, begin + error.start) from error


def meant_keyword(tokens: Sequence[Token], at: int) -> str:
    """Return the keyword that the user meant by a name; empty if it can't be one.

    Args:
        tokens: The tokens of a statement.
        at: The index of a name that is unknown, as of `distict` in `select distict name`.
    """
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if after is None or after.kind not in _OPERANDS or after.text.lower() in KEYWORDS:
        return ""
    similar = _similar(tokens[at])
    right = (word for word in similar if _unexpected(_replaced(tokens, at, word)) is None)
    return next(right, "")


def _without_macros(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens, with a name in the place of each call of a macro."""
    depth, is_called = 0, False
    for token in tokens:
        if depth or (is_called and token.text == "("):
            depth += (token.text == "(") - (token.text == ")")
        else:
            yield token._replace(text="_macro") if token.kind == "macro" else token
        is_called = token.kind == "macro"


def _complaint(sql: str) -> str | None:
    """Return what SQLite says about the syntax of a statement; None if it is right."""
    explained = sql if sql[:7].lower() == "explain" else f"explain {sql}"
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(explained)
        except sqlite3.Error as error:
            said = str(error)
            return said if any(part in said for part in _COMPLAINTS) else None
    return None


def _unexpected(tokens: Sequence[Token]) -> int | None:
    """Return the index of the first token that SQLite doesn't expect.

    It is the number of tokens if the statement ends too early, and None if the syntax is right.
    """
    words = [token.text for token in tokens]

    def is_wrong(i: int) -> bool:
        said = _complaint(" ".join(words[: i + 1]))
        return said is not None and said != _INCOMPLETE

    if _complaint(" ".join(words)) is None:
        return None
    return bisect_left(range(len(words)), True, key=is_wrong)


def _is_newer(tokens: Sequence[Token], at: int) -> bool:
    """Return whether SQLite is only too old: `group_concat(x order by y)`, a function `left`."""
    if sqlite3.sqlite_version_info >= _WITH_ORDERED_AGGREGATES or not 0 < at < len(tokens):
        return False
    return tokens[at].is_word("order") or tokens[at - 1].is_word("left", "right", "full")


def _problem(tokens: Sequence[Token], at: int) -> tuple[int, str]:
    """Return the index of the mistake, and a sentence about it."""
    if found := _correction(tokens, at):
        place, keyword = found
        return place, f"syntax error at {tokens[place].text}. Did you mean {keyword}?"
    if at and tokens[at - 1].is_word("group", "order", "partition"):
        return at, f"syntax error: {tokens[at - 1].text} needs by after it"
    if at < len(tokens):
        comma = ", after a comma" if at and tokens[at - 1].text == "," else ""
        return at, f'syntax error: "{tokens[at].text}" is not expected here{comma}'
    opened = _never_closed(tokens)
    if opened is not None:
        return opened, "syntax error: this parenthesis is never closed"
    return at - 1, f"syntax error: the statement ends too early, after {tokens[-1].text}"


def _correction(tokens: Sequence[Token], at: int) -> tuple[int, str] | None:
    """Return the index of a mistyped keyword and the keyword; None if none explains the error."""
    best, reached = None, at
    for i in range(min(at, len(tokens) - 1), max(at - _REACH, -1), -1):
        for keyword in _similar(tokens[i]):
            error = _unexpected(_replaced(tokens, i, keyword))
            end = len(tokens) + 1 if error is None else error
            if end > reached:
                best, reached = (i, keyword), end
    return best


def _replaced(tokens: Sequence[Token], at: int, word: str) -> list[Token]:
    return [*tokens[:at], tokens[at]._replace(text=word), *tokens[at + 1 :]]


def _similar(token: Token) -> list[str]:
    """Return the keywords that a word may stand for."""
    word = token.text.lower()
    if token.kind != "word" or word in KEYWORDS:
        return []
    swapped = [each for each in KEYWORDS if sorted(each) == sorted(word)]
    return [*swapped, *get_close_matches(word, KEYWORDS, 3, _SIMILARITY)]


def _never_closed(tokens: Sequence[Token]) -> int | None:
    """Return the index of the last parenthesis that is never closed; None if there is none."""
    opened = []
    for i, token in enumerate(tokens):
        if token.text == "(":
            opened.append(i)
        elif token.text == ")" and opened:
            opened.pop()
    return opened[-1] if opened else None
