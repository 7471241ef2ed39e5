"""Translates a statement from SQLite's dialect to DuckDB's.

The order of the steps matters: functions are replaced by their bodies, then names are resolved,
then operators and calls get SQLite's meaning, then truth values become integers.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import ParseError, TokenError

from stretto.analysis.sql.affinity import convert_texts
from stretto.analysis.sql.bare_columns import wrap_bare_columns
from stretto.analysis.sql.calls import OWN_FUNCTIONS, rewrite_call
from stretto.analysis.sql.errors import refused
from stretto.analysis.sql.inlining import inline_functions
from stretto.analysis.sql.known_functions import KNOWN, check_names
from stretto.analysis.sql.mixed_arguments import order_mixed
from stretto.analysis.sql.names import mark_names, name_results, unknown_quoted_names
from stretto.analysis.sql.operators import rewrite_operator, without_macros
from stretto.analysis.sql.relations import (
    as_select,
    complete_joins,
    make_asof_joins,
    name_values,
    select_values,
)
from stretto.analysis.sql.set_operations import check_set_operations
from stretto.analysis.sql.truth import rewrite_truth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.analysis.sql.catalog import Catalog


_COMMANDS = re.compile(r"\s*(explain|replace|update|pragma|alter|analyze|reindex)\b", re.IGNORECASE)
"""Statements that DuckDB doesn't have, or understands differently."""
_CAST_TO_STRING = re.compile(r"(?i)\bcast\s*\([^()]*\bas\s+string\s*\)")
"""A cast that sqlglot takes for one to text."""


class _DuckDB(DuckDB):
    """DuckDB with the order of NULLs that runtime.SETTINGS sets: other orders are written."""

    NULL_ORDERING = "nulls_are_small"


@lru_cache
def _dialect(functions: frozenset[str]) -> type[SQLite]:
    """Return the dialect without functions that only DuckDB has.

    Args:
        functions: The user's functions; they replace SQL's.
    """
    names = {name.upper() for name in KNOWN} - functions
    known: dict[str, object] = {
        table: {name: build for name, build in builders.items() if name in names}
        for table in ("FUNCTIONS", "FUNCTION_PARSERS")
        for builders in [getattr(SQLite.Parser, table)]
    }
    known["_warn_unsupported"] = lambda _: None  # Such a statement is refused in our words.
    parser = type("Parser", (SQLite.Parser,), known)
    return type("Extended", (SQLite,), {"Parser": parser})


def parse(text: str, functions: Iterable[str] = ()) -> exp.Expr:
    """Parse a statement of SQLite's dialect.

    Args:
        text: The statement.
        functions: The names of the user's functions, in lower case.

    Raises:
        QueryError: The syntax is wrong.
    """
    if command := _COMMANDS.match(text):
        raise refused(command[1].upper())
    try:
        tree = sqlglot.parse_one(text, read=_dialect(frozenset(map(str.upper, functions))))
    except ParseError as error:  # SQLite has accepted the syntax before.
        near = str(error.errors[0].get("highlight") or "") if error.errors else ""
        raise refused(f"the syntax near {near}" if near else "this syntax") from error
    except TokenError as error:
        raise refused("this syntax") from error
    if isinstance(tree, exp.Command | exp.Update | exp.Pragma):
        raise refused("this statement")
    mark_names(tree, text)
    return tree


def rewrite(
    text: str, catalog: Catalog, *, with_macros: bool = True, mixes_types: bool = False
) -> str:
    """Return a statement in DuckDB's dialect.

    Args:
        text: One statement.
        catalog: The names that the statement may use.
        with_macros: False to use DuckDB's own operators and casts instead of the macros.
        mixes_types: Whether `coalesce` and `case` give values of several types: DuckDB's VARIANT.

    Raises:
        QueryError: The syntax is wrong, or the statement uses something that is not available.
    """
    if _CAST_TO_STRING.search(text):
        raise refused("a cast to string (in SQLite, a cast to numeric; text is the type of texts)")
    parse_call = partial(parse, functions=[*catalog.functions, *catalog.recursive, *OWN_FUNCTIONS])
    tree = parse_call(text)
    check_names(tree, catalog)
    _check_types(tree)
    if isinstance(tree, exp.Create) and (created := tree.find(exp.Table)) is not None:
        catalog.add_untyped(created.name)
    tree = as_select(tree)
    name_results(tree, text)
    tree = inline_functions(tree, catalog, parse_call)
    make_asof_joins(tree)
    select_values(tree)
    name_values(tree)
    complete_joins(tree)
    unknown_quoted_names(tree, catalog)
    convert_texts(tree, catalog)
    for select in list(tree.find_all(exp.Select)):
        wrap_bare_columns(select)
    for node in reversed(list(tree.walk())):  # Children come before their parents.
        replacement = rewrite_call(node, catalog)
        if replacement is node:
            replacement = rewrite_operator(node)
        if replacement is not node:
            node.replace(replacement)
    order_mixed(tree)
    _type_alternatives(tree, mixes_types)
    rewrite_truth(tree)
    if not with_macros:
        without_macros(tree)
    check_set_operations(tree, catalog.types)
    return tree.sql(dialect=_DuckDB, unsupported_level=sqlglot.ErrorLevel.IGNORE)


def _check_types(tree: exp.Expr) -> None:
    """Check that the columns of a new table have types: a column of DuckDB needs one.

    Raises:
        QueryError: One has none.
    """
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        return
    for column in tree.this.expressions:
        is_untyped = isinstance(column, exp.ColumnDef) and column.kind is None
        if is_untyped or isinstance(column, exp.Identifier):
            raise refused(f"a table whose column {column.name} has no type")


def _type_alternatives(tree: exp.Expr, mixes_types: bool) -> None:
    """Give alternatives in `coalesce` and `case` a type: DuckDB would convert texts in quotes."""
    for node in list(tree.find_all(exp.Coalesce, exp.Case, exp.If)):
        if mixes_types and node.find_ancestor(exp.Greatest, exp.Least) is not None:
            raise refused("max or min of several values, numbers and texts,")
        parts = [node.args.get("true"), node.args.get("false"), node.args.get("default")]
        if isinstance(node, exp.Coalesce):
            parts = [node.this, *node.expressions]
        for part in parts:
            if part is not None and (mixes_types or part.is_string):
                part.replace(exp.cast(part.copy(), "variant" if mixes_types else "varchar"))
