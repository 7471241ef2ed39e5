"""Tables whose columns a statement uses, but that its `from` lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.analysis.sql.advice import Names
    from stretto.analysis.sql.tokens import Token

_KEYS = ("utid", "upid", "ucpu", "track_id", "arg_set_id", "callsite_id")
"""Columns that have the same meaning in each table."""
_TRACKS = " join thread_track k on track_id = k.id"
_OWNERS = {"utid": "thread_track", "upid": "thread", "tid": "thread", "pid": "process"}
"""The tables of columns that users miss in others."""
_THROUGH_TRACKS = {
    ("thread_track", "track_id"): _TRACKS,
    ("thread", "track_id"): f"{_TRACKS} join thread using (utid)",
    ("process", "track_id"): f"{_TRACKS} join thread using (utid) join process using (upid)",
    ("process", "utid"): " join thread using (utid) join process using (upid)",
}
"""What joins a table with tables that have a column, but no key of the table."""


def absent_table(names: Names, kind: str, tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of a name before a `.` that is that of no table in `from`, or None.

    DuckDB calls also the table unknown if only its column is, in a select inside another one.

    Args:
        names: What the engine knows.
        kind: The kind of the name of which the engine complains.
        tokens: The tokens of the statement.
        at: The index of that name; 0 if it isn't there. It may be the column of such a table.
    """
    place = at - 2 if kind == "column" else at
    if place < 1 or [token.text for token in tokens[place + 1 : place + 2]] != ["."]:
        return None
    table, column = tokens[place].text, tokens[place + 2].text.lower()
    has_column = column in map(str.lower, names.columns(table))
    return None if _is_in_from(tokens, table) and not has_column else place


def join_of(names: Names, table: str, tokens: Sequence[Token]) -> str:
    """Return a sentence about a table that `from` lacks; empty if there is no such table.

    Args:
        names: What the engine knows.
        table: The name of the table.
        tokens: The tokens of the statement.
    """
    known = {each.lower() for each in names.known("table")}
    if table.lower() not in known:
        return ""
    others = _other_tables(tokens, known) - {table.lower()}
    return f"the table {table} is not in from.{_join(names, table.lower(), others)}"


def owner_of(names: Names, column: str, tokens: Sequence[Token]) -> str:
    """Return a sentence that says which table has a column; empty if that isn't known.

    Args:
        names: What the engine knows.
        column: The column, which no table of the statement has.
        tokens: The tokens of the statement.
    """
    owner = _OWNERS.get(column.lower(), "")
    known = {each.lower() for each in names.known("table")}
    join = _join(names, owner, _other_tables(tokens, known)) if owner in known else ""
    return f" It is a column of {owner}.{join}" if join else ""


def _is_in_from(tokens: Sequence[Token], name: str) -> bool:
    """Return whether a name is also that of a table or an alias."""
    after = [*[token.text for token in tokens[1:]], ""]
    return any(
        token.text.lower() == name.lower() and following != "."
        for token, following in zip(tokens, after, strict=True)
    )


def _other_tables(tokens: Sequence[Token], known: set[str]) -> set[str]:
    names = {token.text.lower() for token in tokens if token.kind in ("word", "quoted")}
    return {name for name in names & known if _is_in_from(tokens, name)}


def _join(names: Names, table: str, others: set[str]) -> str:
    """Return a sentence that says how to join a table with others; empty if that isn't known."""
    there = {column.lower() for other in others for column in names.columns(other)}
    own = {column.lower() for column in names.columns(table)}
    key = next((key for key in _KEYS if key in there and key in own), None)
    if key is not None and table != "thread_track":
        return f" Add: join {table} using ({key})"
    ways = (
        way for (goal, column), way in _THROUGH_TRACKS.items() if goal == table and column in there
    )
    return next((f" Add:{way}" for way in ways), "")
