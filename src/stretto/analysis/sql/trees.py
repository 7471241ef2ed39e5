"""Helpers for parse trees: calls and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

AGGREGATES = frozenset(
    "total percentile quantile_cont value_at_max_ts arg_max arg_max_null arg_min_null first "
    "last".split()
)
"""Aggregate functions that sqlglot doesn't know."""


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return a call of a function."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def call_name(node: exp.Expr) -> str:
    """Return the name of a function that sqlglot doesn't know, in lower case; else ''."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate function (or a window function)."""
    return isinstance(node, exp.AggFunc) or call_name(node) in AGGREGATES


def in_same_select(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield a node and the nodes below it, but not those in nested selects."""
    yield node
    for child in node.iter_expressions():
        if not isinstance(child, exp.Query):
            yield from in_same_select(child)


def has_aggregate(*nodes: exp.Expr) -> bool:
    """Return whether one of the nodes has an aggregate or a window function.

    DuckDB can't choose the form of a macro by the type of such an argument.
    """
    return any(
        is_aggregate(part) or isinstance(part, exp.Window)
        for node in nodes
        for part in in_same_select(node)
    )
