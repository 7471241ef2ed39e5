"""Errors of SQL statements, with the position in the user's text."""

from __future__ import annotations

import re

from stretto.base.errors import StrettoError


class QueryError(StrettoError):
    """An SQL statement is wrong, or can't be executed.

    Attributes:
        word: A word of the statement at which it is wrong; empty if that is not known.
    """

    def __init__(self, message: str, word: str = "") -> None:
        super().__init__(message)
        self.word = word


class UnknownNameError(QueryError):
    """A name is unknown.

    Args:
        kind: `table`, `column` or `function`.
        name: The name.
    """

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"no such {kind}: {name}")


_NAMES = (
    (r"no such column: (?:\S+\.)?(\w+)", "column"),
    (r"no such table: (?:\w+\.)?(\w+)", "table"),
    (r"no such function: (\w+)", "function"),
    (r'Referenced table "([^"]+)" not found', "table"),
    (r'Column "([^"]+)" does not exist on \w+ side of join', "column"),
    (r'Referenced column "([^"]+)" (?:was )?not found', "column"),
    (r'Table "[^"]*" does not have a column named "([^"]+)"', "column"),
    (r'does not have a column named "([^"]+)"', "column"),
    (r'Table with name "?([^\s"]+)"? does not exist', "table"),
    (r"(?:Scalar|Table|Aggregate) Function with name \"?(\w+)\"? does not exist", "function"),
)


def missing_name(message: str) -> tuple[str, str] | None:
    """Return the kind and the name that the engine's message reports as missing, or None."""
    for pattern, kind in _NAMES:
        if found := re.search(pattern, message):
            return kind, found[1]
    return None


CLOSED = "the trace is closed: make a new TraceProcessor, or take the rows before close()"
NO_DELIMITER = "str_split: the delimiter must be a text that is not empty"
NO_FIELD = "str_split: the number of the field must be an integer, 0 or more"
SEVERAL_ROWS = ": multiple values were returned: the query of a function has at most one row"
"""What follows the name of a function."""
TOO_DEEP = "an expression is nested too deeply: name parts of it by `with`"

SQLITE = "use the engine sqlite (--engine sqlite), which has SQLite's own meaning"
"""The advice of errors of the DuckDB engine alone."""


def refused(what: str, word: str = "") -> QueryError:
    """Return the error of something that only the SQLite engine has.

    Args:
        what: What it is.
        word: The word of the statement that asks for it.
    """
    return QueryError(f"{what} is not available with DuckDB: {SQLITE}", word)


def refused_function(name: str) -> QueryError:
    """Return the error of a function that only the SQLite engine has."""
    return refused(f"the function {name}", name)


def wrong_count(function: str, expected: int, given: int) -> QueryError:
    """Return the error of a call with too many or too few arguments."""
    plural = "s" * (expected != 1)
    return QueryError(f"{function} has {expected} argument{plural}, not {given}", function)


def several_columns(function: str, columns: int) -> str:
    """Return what is wrong with a function whose query has several columns."""
    return f"{function} has {columns} columns: the query of a function has one"


class PlacedError(QueryError):
    """An error at a place in a text, which may be a part of the user's text.

    Args:
        problem: What is wrong.
        text: The text.
        start: The position, as an index of the text.
    """

    def __init__(self, problem: str, text: str, start: int) -> None:
        line = text.count("\n", 0, start) + 1
        first = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        shown = text[first : end if end >= 0 else len(text)]
        indent = re.sub(r"[^\t]", " ", text[first:start])
        where = f"line {line}, column {start - first + 1}"
        super().__init__(f"{where}: {problem}\n  {shown}\n  {indent}^")
        self.problem = problem
        self.text = text
        self.start = start

    def __reduce__(self) -> tuple[type[PlacedError], tuple[str, str, int]]:
        """Let the error of another process come here (`Batch`)."""
        return type(self), (self.problem, self.text, self.start)


def located(message: str, text: str, start: int) -> QueryError:
    """Return an error that shows a position in the user's text.

    Args:
        message: What is wrong.
        text: The user's text.
        start: The position, as an index of the text.
    """
    return PlacedError(message, text, start)
