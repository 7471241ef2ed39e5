"""Errors of SQL statements, with the position in the user's text and the nearest names."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from stretto.base.errors import StrettoError

if TYPE_CHECKING:
    from collections.abc import Iterable


class QueryError(StrettoError):
    """An SQL statement is wrong, or can't be executed."""


_NAMES = (
    (r'Referenced column "([^"]+)" not found', "column"),
    (r'Table "[^"]*" does not have a column named "([^"]+)"', "column"),
    (r'does not have a column named "([^"]+)"', "column"),
    (r"Table with name (\S+) does not exist", "table"),
    (r"(?:Scalar|Table|Aggregate) Function with name \"?(\w+)\"? does not exist", "function"),
)


def missing_name(message: str) -> tuple[str, str] | None:
    """Return the kind and the name that DuckDB's message reports as missing, or None."""
    for pattern, kind in _NAMES:
        if found := re.search(pattern, message):
            return kind, found[1]
    return None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known names most similar to a name; empty if there are none."""
    close = get_close_matches(name.lower(), sorted(set(known)), 3, 0.6)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def located(message: str, text: str, start: int) -> QueryError:
    """Return an error that shows a position in the user's text.

    Args:
        message: What is wrong.
        text: The user's text.
        start: The position, as an index of the text.
    """
    line = text.count("\n", 0, start) + 1
    first = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    shown = text[first : end if end >= 0 else len(text)]
    column = start - first + 1
    return QueryError(
        f"line {line}, column {column}: {message}\n  {shown}\n  {' ' * (column - 1)}^"
    )
