"""Values of `extract_arg` whose types differ, as those of a key that is no literal.

DuckDB's column of them has one type, text. They are compared and ordered in their own types, as in
SQLite: numbers are before texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from stretto.analysis.sql.errors import refused
from stretto.analysis.sql.trees import call, call_name

if TYPE_CHECKING:
    from collections.abc import Callable

MIXED = "_arg_any"
"""The macro of `extract_arg` whose values are numbers and texts."""


def is_mixed(node: exp.Expr | None) -> bool:
    """Return whether a node is a call of `extract_arg` whose values are numbers and texts."""
    return node is not None and call_name(node.unnest()) == MIXED


def by_type(value: exp.Expr, compared: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return the comparison of a mixed value: of the number if it has one, else of the text.

    Args:
        value: The call of `extract_arg`.
        compared: Returns the comparison of a number or text, which has one type.
    """
    number, text = _read("_arg_real", value), _read("_arg_text", value)
    is_text = exp.Is(this=number.copy(), expression=exp.null())
    as_number = exp.And(this=exp.Not(this=is_text.copy()), expression=compared(number))
    as_text = exp.And(this=is_text, expression=compared(text))
    return exp.Paren(this=exp.Or(this=as_number, expression=as_text))


def order_mixed(tree: exp.Expr) -> None:
    """Order by the values of mixed arguments, also where ORDER BY names a column of theirs.

    Raises:
        QueryError: The smallest or largest of them is asked for.
    """
    for extreme in tree.find_all(exp.Max, exp.Min, exp.Greatest, exp.Least):
        if any(is_mixed(part) for part in extreme.iter_expressions()):
            raise refused("max or min of an argument that may be a number or text (without cast)")
    for ordered in list(tree.find_all(exp.Ordered)):
        value = _selected(ordered)
        if is_mixed(value):
            ordered.set("this", _read("_arg_order", value))


def _selected(ordered: exp.Ordered) -> exp.Expr:
    """Return what is ordered by: an expression, or that of a result by its name or number."""
    by: exp.Expr = ordered.this
    select = ordered.find_ancestor(exp.Select, exp.SetOperation, exp.Window)
    if not isinstance(select, exp.Select):
        return by
    results: list[exp.Expr] = select.selects
    if isinstance(by, exp.Literal) and by.is_int and 0 < int(by.this) <= len(results):
        return results[int(by.this) - 1].unalias()
    name = by.name.lower() if isinstance(by, exp.Column) and not by.table else None
    return next((part.unalias() for part in results if part.alias.lower() == name), by)


def _read(macro: str, value: exp.Expr) -> exp.Expr:
    return call(macro, *[argument.copy() for argument in value.unnest().expressions])
