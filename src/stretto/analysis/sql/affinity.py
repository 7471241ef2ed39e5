"""Texts in quotes that are compared with numbers: SQLite makes numbers of them beside some columns.

    case depth when '0' then …            case depth when 0 then …
    cast(id as text) = 3                  cast(id as text) = '3'

A column of a table has an affinity, an expression has none: `depth + 0 = '0'` is false. But a
condition of WHERE or ON, such as `where depth = '0'`, is answered by the trace processor's tables
themselves: there a number never equals a text. Inside of OR, that depends on SQLite's plan: such a
condition is refused, unless all of them are equations of one column, which SQLite makes a list of.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from stretto.analysis.sql.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.analysis.sql.catalog import Catalog

_NUMBER = re.compile(r"\s*[-+]?([0-9]{1,18}|[0-9]{0,15}\.[0-9]{1,15}|[0-9]{1,15}\.)\s*")
_FILTERED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPARED = (*_FILTERED, exp.NullSafeEQ, exp.NullSafeNEQ)
_NUMERIC = ("INTEGER", "REAL")


def convert_texts(tree: exp.Expr, catalog: Catalog) -> None:
    """Convert the literals beside columns and casts as SQLite does, except in filters of tables.

    Raises:
        QueryError: Whether SQLite converts a literal depends on its plan.
    """
    for value, literal in list(_pairs(tree)):
        if isinstance(value, exp.Cast) and not literal.is_string and _is_text(value):
            literal.replace(exp.Literal.string(literal.name))
        elif literal.is_string and _NUMBER.fullmatch(literal.name) and _is_number(value, catalog):
            compared = literal.find_ancestor(*_COMPARED, exp.In, exp.Between, exp.Case)
            if isinstance(value, exp.Column) and compared and _depends_on_plan(compared):
                raise QueryError(
                    f"{literal.sql()} is a text: write the number without quotes", literal.sql()
                )
            literal.replace(_number(literal.name))


def _pairs(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield each column or cast with each literal that it is compared with."""
    for node in tree.find_all(*_COMPARED, exp.In, exp.Between, exp.Case):
        value = node.this.unnest() if node.this is not None else None
        for literal in _others(node):
            found, other = value, literal.unnest()
            if isinstance(found, exp.Literal):
                found, other = other, found
            if not isinstance(found, exp.Column | exp.Cast) or not isinstance(other, exp.Literal):
                continue
            if isinstance(found, exp.Cast) or not _is_filter(node):
                yield found, other


def _others(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Case):
        return [branch.this for branch in node.args["ifs"]]
    if isinstance(node, exp.In):
        return list(node.expressions)
    if isinstance(node, exp.Between):
        return [node.args["low"], node.args["high"]]
    return [node.expression]


def _can_filter(node: exp.Expr) -> bool:
    """Return whether a table of the trace processor can answer such a condition."""
    if isinstance(node, exp.In):
        return len(node.expressions) == 1
    return isinstance(node, (*_FILTERED, exp.Between))


def _is_filter(node: exp.Expr) -> bool:
    """Return whether the trace processor's tables answer a condition themselves."""
    if not _can_filter(node):
        return False
    while isinstance(node.parent, exp.And | exp.Paren):
        node = node.parent
    return _chooses_rows(node.parent) or isinstance(node.parent, exp.Having)


def _chooses_rows(clause: exp.Expr | None) -> bool:
    """Return whether a clause is the WHERE of a select, or an ON."""
    is_where = isinstance(clause, exp.Where) and not isinstance(clause.parent, exp.Filter)
    return is_where or isinstance(clause, exp.Join)


def _depends_on_plan(node: exp.Expr) -> bool:
    """Return whether a condition is part of an OR that SQLite may split into filters."""
    if not _can_filter(node):
        return False
    outermost = node
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren):
        node = node.parent
        outermost = node if isinstance(node, exp.Or) else outermost
    if not isinstance(outermost, exp.Or) or not _chooses_rows(node.parent):
        return False
    parts = list(outermost.flatten())
    is_list = all(isinstance(part, exp.EQ) for part in parts)
    return not is_list or len({part.this.sql().lower() for part in parts}) > 1


def _is_text(value: exp.Cast) -> bool:
    return value.is_type("text", "varchar")


def _number(text: str) -> exp.Expr:
    number = exp.Literal.number(text.strip().lstrip("+-"))
    return exp.Neg(this=number) if "-" in text else number


def _is_number(value: exp.Expr, catalog: Catalog) -> bool:
    """Return whether a cast gives numbers, or a column of the trace's tables has only numbers."""
    if isinstance(value, exp.Cast):
        return value.is_type("int", "bigint", "double", "float")
    select = value.parent_select
    sources = _sources(select) if isinstance(select, exp.Select) else []
    if isinstance(value, exp.Column) and value.table:
        sources = [each for each in sources if each.alias_or_name.lower() == value.table.lower()]
    kinds = {_kind(source, value.name, catalog) for source in sources} - {None}
    return bool(kinds) and kinds <= {*_NUMERIC}


def _sources(select: exp.Select) -> list[exp.Expr]:
    """Return what a select reads."""
    first, joins = select.args.get("from_"), select.args.get("joins") or []
    return [part.this for part in [*([first] if first is not None else []), *joins]]


def _is_cte(source: exp.Table) -> bool:
    ctes = source.root().find_all(exp.CTE)
    return source.name.lower() in {part.alias.lower() for part in ctes}


def _kind(source: exp.Expr, column: str, catalog: Catalog) -> str | None:
    """Return the type of a column; None if the source has none, "" if it is not known."""
    is_table = isinstance(source, exp.Table) and not _is_cte(source)
    if not is_table or not catalog.has_types(source.name):
        return ""
    kinds = {name.lower(): kind for name, kind in catalog.columns_of(source.name)}
    return kinds.get(column.lower())
