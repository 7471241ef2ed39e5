"""Functions of `create perfetto function`: a call is replaced by the function's body.

The columns in a call's arguments must not be mistaken for columns of the body's tables. So they are
written with the name of their table, and the tables of the body get names that no other table has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from stretto.analysis.sql.errors import SQLITE, QueryError, several_columns, wrong_count
from stretto.analysis.sql.macros import substitute
from stretto.analysis.sql.relations import as_select
from stretto.analysis.sql.trees import call, call_name, in_same_select, is_aggregate

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.analysis.sql.catalog import Catalog, Function

    Arguments = dict[str, exp.Expr]

_PREFIX = "_arg_"
_MAX_CALLS = 500
_MAX_DEPTH = 32


def inline_functions(
    tree: exp.Expr, catalog: Catalog, parse: Callable[[str], exp.Expr]
) -> exp.Expr:
    """Replace the calls of functions by their bodies, also the calls in these bodies.

    Args:
        tree: The statement.
        catalog: Has the functions.
        parse: Parses the text of a body.

    Raises:
        QueryError: A call has the wrong number of arguments, or a function calls itself.
    """
    for number in range(_MAX_CALLS):
        calls = tree.find_all(exp.Anonymous)
        called = next((n for n in calls if call_name(n) in catalog.functions), None)
        if called is None:
            return tree
        function = catalog.functions[call_name(called)]
        named = _arguments(called, function.parameters)
        text = substitute(function.body, {name: _PREFIX + name for name in named})
        body = as_select(parse(text))
        _check_depth(called, body, function)
        if body.find(exp.From):  # Its columns could be taken for those of the arguments.
            _qualify(called, named, catalog)
        _rename_tables(body, f"_f{number}_")
        _inline(called, _with_values(body, named), function)
    raise QueryError(f"the statement has more than {_MAX_CALLS} calls of functions")


def _arguments(called: exp.Anonymous, parameters: tuple[str, ...]) -> Arguments:
    arguments = called.expressions
    if len(arguments) != len(parameters):
        raise wrong_count(call_name(called), len(parameters), len(arguments))
    return dict(zip(parameters, arguments, strict=True))


def _check_depth(called: exp.Expr, body: exp.Expr, function: Function) -> None:
    """Note the depth of the calls in a body: the number of functions around them.

    Raises:
        QueryError: The depth is too large, so a function calls itself.
    """
    depth = called.meta.get("depth", 0) + 1
    if depth > _MAX_DEPTH:
        said = f"the function {call_name(called)} calls itself"
        if function.returns_table:
            raise QueryError(f"{said}: one that returns a table can't")
        raise QueryError(f"{said} through others, which is not available with DuckDB: {SQLITE}")
    for inner in body.find_all(exp.Anonymous):
        inner.meta["depth"] = depth


def _inline(called: exp.Anonymous, body: exp.Expr, function: Function) -> None:
    table = called.parent
    if not function.returns_table:
        called.replace(_scalar(call_name(called), body))
    elif isinstance(table, exp.Table):
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(call_name(called)))
        table.replace(exp.Subquery(this=body, alias=alias))
    else:
        raise QueryError(f"{call_name(called)} returns a table: use it after FROM or JOIN")


def _scalar(name: str, body: exp.Expr) -> exp.Expr:
    """Return the value of a function's body; DuckDB raises an error if it has several rows."""
    if isinstance(body, exp.Query) and len(body.selects) > 1:
        raise QueryError(several_columns(name, len(body.selects)))
    clauses = {key for key, part in body.args.items() if part} - {"expressions"}
    if isinstance(body, exp.Select) and not clauses:
        return exp.Paren(this=body.expressions[0].unalias())
    if _has_one_row(body):
        return exp.Subquery(this=body)
    columns = [exp.to_identifier("_value")]
    rows = exp.Subquery(this=body, alias=exp.TableAlias(this="_rows", columns=columns))
    values = [exp.Count(this=exp.Star()), call("first", exp.column("_value"))]
    return exp.Subquery(
        this=exp.select(call("_single", *values, exp.Literal.string(name))).from_(rows)
    )


def _has_one_row(body: exp.Expr) -> bool:
    """Return whether a query is seen to have at most one row."""
    limit = body.args.get("limit")
    if limit is not None and limit.expression is not None and limit.expression.name in ("0", "1"):
        return True
    parts = (part for each in body.expressions for part in in_same_select(each))
    grouped = body.args.get("group") is not None or body.find(exp.Window) is not None
    return isinstance(body, exp.Select) and not grouped and any(map(is_aggregate, parts))


def _qualify(called: exp.Expr, named: Arguments, catalog: Catalog) -> None:
    """Add the name of its table to each column in the arguments.

    Raises:
        QueryError: The table of a column is unknown.
    """
    parts = (part for value in named.values() for part in in_same_select(value))
    columns = [part for part in parts if isinstance(part, exp.Column) and not part.table]
    if not columns:
        return
    select = called.find_ancestor(exp.Select)
    tables = _tables(select) if select is not None else []
    for column in columns:
        owners = tables if len(tables) == 1 else _owners(tables, column.name, catalog)
        if len(owners) != 1:
            raise QueryError(
                f"{call_name(called)}: write the table before the column {column.name}"
            )
        column.set("table", exp.to_identifier(owners[0].alias_or_name))


def _tables(select: exp.Select) -> list[exp.Expr]:
    """Return the tables and subqueries of FROM and JOIN. Those without a name get one."""
    origin = select.args.get("from_")
    parts = [origin, *(select.args.get("joins") or [])]
    tables = [part.this for part in parts if part is not None]
    for number, table in enumerate(tables):
        if not table.alias_or_name:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(f"_from{number}")))
    return tables


def _owners(tables: list[exp.Expr], column: str, catalog: Catalog) -> list[exp.Expr]:
    return [
        table
        for table in tables
        if isinstance(table, exp.Table) and column.lower() in catalog.columns({table.name.lower()})
    ]


def _rename_tables(body: exp.Expr, prefix: str) -> None:
    """Put a prefix before the names of the tables in a body."""
    renamed = set()
    for table in list(body.find_all(exp.Table, exp.Subquery)):
        name = table.alias_or_name
        if not name:
            continue
        renamed.add(name.lower())
        alias = table.args.get("alias")
        columns = alias.columns if alias is not None else []
        identifier = exp.to_identifier(prefix + name.lower())
        table.set("alias", exp.TableAlias(this=identifier, columns=columns))
    for column in body.find_all(exp.Column):
        if column.table.lower() in renamed:
            column.set("table", exp.to_identifier(prefix + column.table.lower()))


def _with_values(body: exp.Expr, named: Arguments) -> exp.Expr:
    """Replace the names of arguments by their values."""
    values = {_PREFIX + name: value for name, value in named.items()}
    for column in list(body.find_all(exp.Column)):
        if column.name in values:
            column.replace(exp.Paren(this=values[column.name].copy()))
    return body
