"""Macros whose arguments are lists. PerfettoSQL can't split a list, so they are in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import QueryError
from stretto.analysis.sql.tokens import source, split, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _items(text: str) -> list[str]:
    """Return the items of a list in parentheses."""
    tokens = tokenize(text)
    if not tokens or (tokens[0].text, tokens[-1].text) != ("(", ")"):
        raise QueryError(f"expected a list in parentheses, not {text!r}")
    return [source(text, part) for part in split(tokens[1:-1], ",") if part]


def interval_intersect(arguments: Sequence[str]) -> str:
    """Return the query of `_interval_intersect!((a, b, …), (columns))`.

    Each row is the common time of one interval from each table, if they have equal values in the
    columns. An interval with the duration 0 intersects all intervals that are open at its time.

    Raises:
        QueryError: The arguments are not two lists, or there are less than two tables.
    """
    if len(arguments) != 2:
        raise QueryError(f"_interval_intersect! has 2 arguments, not {len(arguments)}")
    tables, columns = map(_items, arguments)
    if len(tables) < 2:
        raise QueryError("_interval_intersect! needs two tables or more")
    sides = [f"_i{n}" for n in range(len(tables))]
    start = f"max({', '.join(f'{side}.ts' for side in sides)})"
    end = f"min({', '.join(f'{side}.ts + {side}.dur' for side in sides)})"
    last = f"min({', '.join(f'{side}.ts + max({side}.dur, 1)' for side in sides)})"
    results = [f"{start} as ts", f"{end} - {start} as dur"]
    results += [f"{side}.id as id_{n}" for n, side in enumerate(sides)]
    results += [f"_i0.{column} as {column}" for column in columns]
    equal = [f"_i0.{column} = {side}.{column}" for side in sides[1:] for column in columns]
    origin = ", ".join(f"{table} as {side}" for table, side in zip(tables, sides, strict=True))
    conditions = " and ".join([*equal, f"{start} < {last}"])
    return f"(select {', '.join(results)} from {origin} where {conditions})"


LIST_MACROS: dict[str, Callable[[Sequence[str]], str]] = {
    "_interval_intersect": interval_intersect,
}
"""The macros by name."""
