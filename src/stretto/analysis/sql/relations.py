"""Translates FROM: joins without a condition, VALUES, and table functions that come first."""

from __future__ import annotations

from sqlglot import exp

from stretto.analysis.sql.trees import call_name


def as_select(tree: exp.Expr) -> exp.Expr:
    """Return a statement that consists of VALUES as a select; other statements as they are."""
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(tree)
    return tree


def select_values(tree: exp.Expr) -> None:
    """Make queries of the rows in `(a, b) in (values …)`."""
    for condition in list(tree.find_all(exp.In)):
        rows = condition.expressions
        if len(rows) == 1 and isinstance(rows[0], exp.Values):
            condition.set("expressions", None)
            condition.set("query", exp.Subquery(this=as_select(rows[0])))


def name_values(tree: exp.Expr) -> None:
    """Name the columns of VALUES `column1`, `column2`, …, as SQLite does."""
    for values in list(tree.find_all(exp.Values)):
        if isinstance(values.parent, exp.Insert) or not values.expressions:
            continue
        first = values.expressions[0]
        number = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        alias = values.args.get("alias")
        if alias is not None and alias.columns:
            continue
        name = alias.this if alias is not None and alias.this else exp.to_identifier("_values")
        columns = [exp.to_identifier(f"column{n}") for n in range(1, number + 1)]
        values.set("alias", exp.TableAlias(this=name, columns=columns))


def make_asof_joins(tree: exp.Expr) -> None:
    """Make ASOF joins of those with `on _latest(a.ts >= b.ts)`: each row gets the latest other one.

    Only modules for DuckDB have such joins; SQLite has nothing like it.
    """
    for join in tree.find_all(exp.Join):
        condition = join.args.get("on")
        if isinstance(condition, exp.Anonymous) and call_name(condition) == "_latest":
            join.set("method", "ASOF")
            join.set("on", condition.expressions[0])


def complete_joins(tree: exp.Expr) -> None:
    """Give joins the condition that DuckDB needs; move table functions; drop `limit -1`."""
    for limit in list(tree.find_all(exp.Limit)):
        if isinstance(limit.expression, exp.Neg):  # In SQLite a negative limit is no limit.
            limit.pop()
    for select in tree.find_all(exp.Select):
        _put_functions_last(select)
        for join in select.args.get("joins") or []:
            if join.args.get("using") and join.kind == "CROSS":
                join.set("kind", None)
            if join.args.get("on") or join.args.get("using") or join.method:
                continue
            if join.side:
                join.set("on", exp.true())
            elif not join.kind:
                join.set("kind", "CROSS")


def _depends_on(item: exp.Expr) -> set[str]:
    return {column.table.lower() for column in item.find_all(exp.Column) if column.table}


def _put_functions_last(select: exp.Select) -> None:
    """Swap a table function at the begin of FROM with the joined table that its arguments use."""
    origin, joins = select.args.get("from_"), select.args.get("joins") or []
    if origin is None or not isinstance(origin.this, exp.Table | exp.Subquery):
        return
    if isinstance(origin.this, exp.Table) and isinstance(origin.this.this, exp.Identifier):
        return
    needed = _depends_on(origin.this)
    for join in joins:
        condition = join.args.get("on")
        is_free = condition is None or isinstance(condition, exp.Boolean)
        if join.alias_or_name.lower() in needed and not join.side and is_free:
            first, second = origin.this.copy(), join.this.copy()
            origin.set("this", second)
            join.set("this", first)
            return
