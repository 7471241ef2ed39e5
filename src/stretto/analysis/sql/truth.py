"""Truth values. SQLite's are the integers 0 and 1, and any value can be a condition.

DuckDB has booleans. A boolean that is used as a value becomes an integer, and a value that is used
as a condition becomes a boolean.
"""

from __future__ import annotations

from sqlglot import exp

from stretto.analysis.sql.operators import COMPARISONS
from stretto.analysis.sql.trees import call, call_name, has_aggregate

_PREDICATES = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Is,
    exp.Exists,
    exp.Between,
    exp.In,
    exp.Boolean,
    exp.Like,
    exp.Glob,
    exp.RegexpLike,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
)


def rewrite_truth(tree: exp.Expr) -> None:
    """Convert booleans that are used as values to integers, and conditions to booleans."""
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Paren) or not isinstance(node, exp.Condition | exp.Subquery):
            continue
        is_truth = isinstance(node, _PREDICATES) or call_name(node) in COMPARISONS
        if is_truth and _is_value(node):
            node.replace(exp.Cast(this=node.copy(), to=exp.DataType.build("bigint")))
        elif not is_truth and _is_condition(node):
            node.replace(_truth(node))


def _truth(node: exp.Expr) -> exp.Expr:
    if has_aggregate(node):
        return exp.NEQ(this=exp.Paren(this=node.copy()), expression=exp.Literal.number(0))
    return call("_truth", node.copy())


def _place(node: exp.Expr) -> tuple[exp.Expr | None, str]:
    """Return the parent of a node, and which argument of it the node is; skip parentheses."""
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return node.parent, node.arg_key or ""


def _is_condition(node: exp.Expr) -> bool:
    parent, key = _place(node)
    if isinstance(parent, exp.And | exp.Or | exp.Not | exp.Where | exp.Having):
        return True
    if isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Boolean):
        return True
    return (key == "on" and isinstance(parent, exp.Join)) or (key == "this" and _is_branch(parent))


def _is_branch(node: exp.Expr | None) -> bool:
    """Return whether the first part of a node is a condition."""
    if not isinstance(node, exp.If):
        return False
    return not (isinstance(node.parent, exp.Case) and node.parent.this is not None)


def _is_value(node: exp.Expr) -> bool:
    parent, _ = _place(node)
    return parent is not None and not _is_condition(node)
