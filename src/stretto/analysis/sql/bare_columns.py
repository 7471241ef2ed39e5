"""Bare columns: columns of a select with aggregates that are in no aggregate and not grouped by.

SQLite takes their values from one row of the group: that of the `min` or `max`, of the last one if
there are several; without any, the first row. Other aggregates don't matter. If all values of the
`min` or `max` are NULL, it is the last row; but the trace processor reads a table backwards for a
`max` that is alone, so there it is the first one.
"""

from __future__ import annotations

from sqlglot import exp

from stretto.analysis.sql.trees import call, in_same_select, is_aggregate


def wrap_bare_columns(select: exp.Select) -> None:
    """Put the bare columns of a select into aggregates."""
    found = _aggregates(select)
    group = select.args.get("group")
    if group is None and not found:
        return
    keys = _keys(select, group)
    # SQLite computes an aggregate once, at its first place.
    deciding = {node.sql(): node for node in found if isinstance(node, exp.Min | exp.Max)}
    chosen = [*deciding.values()][-1] if deciding else None
    alone = group is None and len(found) == 1 and _reads_one_table(select)
    for part in [*_projections(select, keys), *_others(select)]:
        for column in list(_bare(part, keys)):
            column.replace(_wrapped(column, chosen, alone))


def _reads_one_table(select: exp.Select) -> bool:
    tables = select.args.get("from_")
    return (
        tables is not None and isinstance(tables.this, exp.Table) and not select.args.get("joins")
    )


def _projections(select: exp.Select, keys: list[exp.Expr]) -> list[exp.Expr]:
    return [part for part in select.expressions if part not in keys and part.unalias() not in keys]


def _others(select: exp.Select) -> list[exp.Expr]:
    """Return the columns in HAVING and ORDER BY that are not names of results."""
    aliases = {part.alias.lower() for part in select.expressions if part.alias}
    return [
        part
        for name in ("having", "order")
        if (clause := select.args.get(name)) is not None
        for part in _columns_without(clause, aliases)
    ]


def _columns_without(clause: exp.Expr, aliases: set[str]) -> list[exp.Expr]:
    return [
        node
        for node in in_same_select(clause)
        if isinstance(node, exp.Column)
        and (node.table or node.name.lower() not in aliases)
        and not _inside_aggregate(node, clause)
    ]


def _inside_aggregate(node: exp.Expr, top: exp.Expr) -> bool:
    parent = node.parent
    while parent is not None and parent is not top:
        if is_aggregate(parent):
            return True
        parent = parent.parent
    return False


def _aggregates(select: exp.Select) -> list[exp.Expr]:
    """Return the aggregates of a select, without window functions."""
    clauses = [*select.expressions, select.args.get("order"), select.args.get("having")]
    return [
        node
        for clause in clauses
        if clause is not None
        for node in in_same_select(clause)
        if is_aggregate(node) and not _is_windowed(node)
    ]


def _is_windowed(node: exp.Expr) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _keys(select: exp.Select, group: exp.Expr | None) -> list[exp.Expr]:
    """Return the expressions that are grouped by; for a number or name of a result, the result."""
    keys: list[exp.Expr] = []
    named = {part.alias.lower(): part for part in select.expressions if part.alias}
    for key in group.expressions if group is not None else []:
        if isinstance(key, exp.Literal) and not key.is_string:
            place = int(key.this) - 1
            if 0 <= place < len(select.expressions):
                keys += [select.expressions[place], select.expressions[place].unalias()]
            continue
        keys.append(key)
        if isinstance(key, exp.Column) and not key.table and key.name.lower() in named:
            keys += [named[key.name.lower()], named[key.name.lower()].unalias()]
    return keys


def _is_key(node: exp.Expr, keys: list[exp.Expr]) -> bool:
    if not isinstance(node, exp.Column):
        return node in keys
    return any(
        isinstance(key, exp.Column)
        and key.name.lower() == node.name.lower()
        and (not key.table or not node.table or key.table.lower() == node.table.lower())
        for key in keys
    )


def _bare(node: exp.Expr, keys: list[exp.Expr]) -> list[exp.Expr]:
    if (is_aggregate(node) and not _is_windowed(node)) or _is_key(node, keys):
        return []
    if isinstance(node, exp.Filter) and not _is_windowed(node):
        return []
    if isinstance(node, exp.Column):
        return [] if isinstance(node.this, exp.Star) else [node]
    parts = [part for part in node.iter_expressions() if not isinstance(part, exp.Query)]
    return [column for part in parts for column in _bare(part, keys)]


def _wrapped(column: exp.Expr, chosen: exp.Expr | None, alone: bool) -> exp.Expr:
    wrapped = call("first", column.copy()) if chosen is None else _beside(column, chosen, alone)
    if isinstance(column.parent, exp.Select):  # The result keeps the name of the column.
        return exp.alias_(wrapped, column.name, quoted=True)
    return wrapped


def _beside(column: exp.Expr, chosen: exp.Expr, alone: bool) -> exp.Expr:
    """Return the value of a column in the row of a `min` or `max`."""
    is_max = isinstance(chosen, exp.Max)
    name = "arg_max_null" if is_max else "arg_min_null"
    wrapped = call(name, column.copy(), chosen.this.copy())
    is_first = alone and is_max and isinstance(chosen.this, exp.Column)
    otherwise = call("first" if is_first else "last", column.copy())
    nothing = exp.Is(this=chosen.copy(), expression=exp.null())
    return call("if", nothing, otherwise, wrapped)
