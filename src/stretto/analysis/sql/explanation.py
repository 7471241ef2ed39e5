"""Explains an engine's errors: the position in the user's text, and similar names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.advice import advice
from stretto.analysis.sql.culprit import culprit
from stretto.analysis.sql.errors import SQLITE, located, missing_name
from stretto.analysis.sql.from_clause import absent_table, join_of, owner_of
from stretto.analysis.sql.statements import tokens_of
from stretto.analysis.sql.syntax import meant_keyword
from stretto.analysis.sql.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.analysis.sql.advice import Names
    from stretto.analysis.sql.errors import QueryError
    from stretto.analysis.sql.statements import Statement
    from stretto.analysis.sql.tokens import Token

_QUOTES = "\"'`[]"
_NEAR = re.compile(r'near "([^"]+)"|wrong number of arguments to function (\w+)')
_CLASS = re.compile(r"^(?:[A-Z][\w-]* )+Error: ")
"""What DuckDB puts first: `Binder Error: `."""
_MARKED = re.compile(r"^(LINE \d+: .*)\n( *)\^", re.MULTILINE)
"""DuckDB's line of the statement, and the mark below it. The statement is the rewritten one."""
_TYPES = re.compile(
    r"^No function matches the given name and argument types '(.+?)\((.*)\)'.*", re.DOTALL
)
_TYPES_DIFFER = re.compile(
    r"^(?:Parser|Conversion|Out of Range|Binder|Invalid Input|Not implemented|INTERNAL) Error: "
)
"""Classes of DuckDB's errors at statements that SQLite accepts, as it converts the values."""
_WRONG_IN_SQLITE = re.compile(
    r"FROM clause is missing|Ambiguous reference|cannot contain (?:window|aggregate)|"
    r"calls cannot be nested|term out of range|Subquery returns|Set operations can only|"
    r"is a table function but|Can only (?:delete|update)|Values were not provided|"
    r"multiple values were returned|must be a text that|must be an integer"
)
"""Parts of DuckDB's messages at statements that SQLite refuses, too."""
_MACRO = re.compile(r"^Macro _?(\w+)\(\) .*", re.DOTALL)
_FILES = re.compile(r"file system operations are disabled|disabled (?:by|through) configuration")


class Failure(NamedTuple):
    """A statement that failed.

    Attributes:
        message: What the engine says.
        statement: The statement.
        text: The user's text, of which the statement is a part.
        again: Runs the statement with another text of its SQL, and returns the engine's message.
    """

    message: str
    statement: Statement
    text: str
    again: Callable[[str], str]


def explained(failure: Failure, names: Names) -> QueryError:
    """Return an engine's message as an error that shows the position in the user's text.

    Args:
        failure: What failed.
        names: What the engine knows.
    """
    missing = missing_name(failure.message)
    kind, shown = missing or ("", _complained_word(failure.message))
    tokens, at = _place(failure, shown, search=missing is not None)
    problem = _plain(failure.message)
    if missing is not None:
        at, problem = _missing(names, kind, shown, tokens, at)
    return located(problem, failure.text, tokens[at].start if at else failure.statement.start)


def in_text(error: QueryError, statement: Statement, text: str) -> QueryError:
    """Return an error with a position in the user's text.

    Args:
        error: The error. If it has a position, it is returned.
        statement: The statement that has failed: its position is shown if that of the error's word
            isn't known.
        text: The user's text, of which the statement is a part.
    """
    if str(error).startswith("line "):
        return error
    tokens = tokens_of(statement, text)
    places = _places(tokens, error.word)
    return located(str(error), text, tokens[places[0]].start if places else statement.start)


def _place(failure: Failure, shown: str, *, search: bool) -> tuple[list[Token], int]:
    """Return the tokens around a name, and its index; 0 if it is not there.

    Args:
        failure: What failed.
        shown: The name.
        search: Whether to find out which of several equal names is meant; it is the first one else.
    """
    start = failure.statement.start
    own = tokens_of(failure.statement, failure.text)
    everywhere = tokenize(failure.text)  # Such as in the function that is called.
    for tokens in (own, [token for token in everywhere if token.start >= start], everywhere):
        places = _places(tokens, shown)
        if places:
            found = culprit(tokens, places, failure.again) if search and places[1:] else None
            return tokens, found or places[0]
    return own, 0


def _places(tokens: list[Token], shown: str) -> list[int]:
    name = shown.strip(_QUOTES).lower()
    texts = [token.text.strip(_QUOTES).lower() for token in tokens]
    return [i for i, text in enumerate(texts) if name and text == name]


def _missing(names: Names, kind: str, shown: str, tokens: list[Token], at: int) -> tuple[int, str]:
    """Return the index of what is missing, and a sentence about it."""
    qualifier = absent_table(names, kind, tokens, at)
    if qualifier is None and kind == "table" and at and _has_column(tokens, at):
        kind, at, shown = "column", at + 2, tokens[at + 2].text
    elif qualifier is not None:
        kind, at, shown = "table", qualifier, tokens[qualifier].text
        if problem := join_of(names, shown, tokens):
            return at, problem
    meant = ""
    if kind == "column" and at:
        keyword = meant_keyword(tokens, at)
        meant = f" Did you mean {keyword}?" if keyword else owner_of(names, shown, tokens)
    meant = meant or advice(names, kind, shown, tokens, at)
    return at, f"there is no {kind} {shown}.{meant}"


def _has_column(tokens: list[Token], at: int) -> bool:
    """Return whether a column of the name follows: `thread.name`."""
    return at + 2 < len(tokens) and tokens[at + 1].text == "."


def _plain(message: str) -> str:
    """Return what the message says, without candidates and without the rewritten statement."""
    if _FILES.search(message):
        return "a query can't read or write files; its result can be written by .parquet(path)"
    said = _CLASS.sub("", message.partition("\n\nLINE ")[0])
    if found := _TYPES.match(said):
        said = f"{found[1]} has no form for arguments of the types {found[2]}: use cast(x as type)"
    elif found := _MACRO.match(said):
        name = _OPERATORS.get(found[1], found[1])
        said = f"the types of the arguments of {name} are not known: use cast(x as type)"
    said = said.partition("\n")[0].strip()
    is_wrong = _WRONG_IN_SQLITE.search(message) or not _TYPES_DIFFER.match(message)
    return said if is_wrong else f"{said}; or {SQLITE}"


_OPERATORS = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "mod": "%",
    "is": "is",
    "is_not": "is not",
    "truth": "a condition",
    "int": "cast",
    "real": "cast",
    "text": "||",
    "blob": "cast",
}
"""What the user wrote for a macro."""


def _complained_word(message: str) -> str:
    """Return the word at which the message complains, or an empty text."""
    if near := _NEAR.search(message):
        return near[1] or near[2]
    marked = _MARKED.search(message)
    word = re.match(r"\w+|'[^']*'|[-+*/%<>=|&~]+", marked[1][len(marked[2]) :]) if marked else None
    return word[0] if word else ""
