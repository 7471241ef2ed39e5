"""Declared columns, arguments and parameters: `(name TYPE, …)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sql.errors import QueryError, UnknownNameError, located
from stretto.analysis.sql.result_names import result_names
from stretto.analysis.sql.tokens import split, tokenize
from stretto.base.nearest_name import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stretto.analysis.sql.tokens import Token

TYPES = (
    "argsetid bool bytes double duration float id int joinid long proto string timestamp uint"
).split()
"""The types of columns and of functions' arguments, in lower case."""
MACRO_TYPES = (
    "columnname columnnamelist expr tableorsubquery _projectionfragment _tablenamelist"
).split()
"""The types of macros' parameters and results, in lower case."""

_NAMES = ("word", "quoted")


class Declared(NamedTuple):
    """A name and its type, in lower case."""

    name: str
    type: str


def declarations(
    text: str, tokens: Sequence[Token], end: int, types: Collection[str]
) -> list[Declared]:
    """Read what is between the parentheses.

    Args:
        text: The user's text.
        tokens: The tokens between the parentheses.
        end: The position of the closing parenthesis.
        types: The types that there are.

    Raises:
        QueryError: A name or type is missing, or there is no such type.
    """
    if not tokens:
        return []
    return [_declared(text, part, end, types) for part in split(tokens, ",")]


def _declared(text: str, part: list[Token], end: int, types: Collection[str]) -> Declared:
    if not part or part[0].kind not in _NAMES:
        raise located("expected a name here", text, part[0].start if part else end)
    if len(part) == 1:
        raise located(f"expected a type after {part[0].text}", text, part[0].start)
    check_type(text, part[1], types)
    _check_reference(text, part[2:], types)
    return Declared(part[0].text.strip('"').lower(), part[1].text.lower())


def check_type(text: str, token: Token, types: Collection[str]) -> None:
    """Check that a token is the name of a type.

    Raises:
        QueryError: There is no such type.
    """
    if token.text.lower() not in types:
        public = [name for name in types if not name.startswith("_")]
        advice = nearest(token.text, public) or f" The types are {', '.join(public)}."
        raise located(f"there is no type {token.text}.{advice}", text, token.start)


def _check_reference(text: str, rest: list[Token], types: Collection[str]) -> None:
    """Check what follows a type: nothing, or the column of `joinid(slice.id)`."""
    kinds = [token.text if token.kind == "operator" else token.kind for token in rest]
    if rest and (types is MACRO_TYPES or kinds != ["(", "word", ".", "word", ")"]):
        raise located(f"{rest[0].text} is not expected here", text, rest[0].start)


def check_columns(name: str, kind: str, declared: Sequence[str], found: Sequence[str]) -> None:
    """Check the columns of a new table or view.

    Args:
        name: Its name.
        kind: `table` or `view`.
        declared: The columns that it is declared with; empty if it isn't.
        found: The columns that it has.

    Raises:
        QueryError: It has others than the declared ones, or is a table with columns of one name.
    """
    names = [column.lower() for column in found]
    if declared and sorted(names) != sorted(declared):
        raise QueryError(
            f"{name} is declared with the columns {', '.join(declared)}, but has {', '.join(names)}"
        )
    repeated = [column for column in dict.fromkeys(names) if names.count(column) > 1]
    if kind == "table" and repeated:
        raise QueryError(f"{name} has several columns of the same name: {', '.join(repeated)}")


def check_returned(name: str, declared: Sequence[str], body: str) -> None:
    """Check the columns of a table function, as far as the text of its body names them.

    Args:
        name: The function.
        declared: The columns that it is declared to return.
        body: The text of its query, with macros expanded.

    Raises:
        QueryError: The query has other columns, or has them in another order.
    """
    found = result_names(body)
    if found is not None and found != list(declared):
        raise QueryError(
            f"{name} is declared to return the columns {', '.join(declared)}, "
            f"but its query has {', '.join(found)}"
        )


def check_index(indexed: Sequence[str], columns: Collection[str]) -> None:
    """Check that a table has the columns of an index.

    Args:
        indexed: The columns of the index; empty if it is dropped.
        columns: The columns of the table.

    Raises:
        UnknownNameError: The table doesn't have a column.
    """
    known = {column.lower() for column in columns}
    for column in indexed:
        if column.lower() not in known:
            raise UnknownNameError("column", column)


def check_variables(function: str, parameters: Sequence[str], body: str) -> None:
    """Raise a QueryError if a function's query has a variable that is no argument of it.

    The trace processor says so of table functions; in others, such a variable is NULL.
    """
    for token in tokenize(body):
        if token.kind == "variable" and token.text[1:].lower() not in parameters:
            raise QueryError(f"{token.text} is no argument of {function}", token.text)
