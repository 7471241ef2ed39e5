"""Types of UNION, INTERSECT and EXCEPT.

DuckDB gives a column of the result one type: numbers become texts if the other select has texts.
SQLite keeps each value as it is, and a number never equals a text. So such statements are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from stretto.analysis.sql.errors import refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Types = list[str] | None

_KINDS = {"BIGINT": "numbers", "HUGEINT": "numbers", "DOUBLE": "numbers", "VARCHAR": "texts"}
_KINDS |= {"BLOB": "blobs"}


def check_set_operations(tree: exp.Expr, types_of: Callable[[str], Types]) -> None:
    """Check that the selects of each UNION, INTERSECT and EXCEPT have columns of equal kinds.

    Args:
        tree: The statement.
        types_of: Returns the types of the columns of a select; None if they are not known.

    Raises:
        QueryError: One select has numbers where the other has texts.
    """
    for node in tree.find_all(exp.SetOperation):
        left = types_of(_statement(node, node.left, None))
        right = types_of(_statement(node, node.right, node.left))
        own = node.parent.alias if isinstance(node.parent, exp.CTE) else ""
        is_recursive = own and _refers(node.right, own)
        for number, pair in enumerate(zip(left or [], right or [], strict=False), 1):
            kinds = [_KINDS.get(kind) for kind in pair]
            if None not in kinds and kinds[0] != kinds[1]:
                said = f"{node.key} of {kinds[0]} and {kinds[1]} in column {number}"
                raise refused(said)
            if is_recursive and pair[1] == "DOUBLE" != pair[0] and kinds[0] == "numbers":
                raise refused(f"column {number} of {own}, an integer that becomes a real,")


def _refers(select: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name.lower() for table in select.find_all(exp.Table))


def _statement(node: exp.Expr, select: exp.Expr, first: exp.Expr | None) -> str:
    """Return a part of a set operation as a statement, with the CTEs around it.

    Args:
        node: The set operation.
        select: The part.
        first: The part by which a recursive CTE begins, if this part may read the CTE.
    """
    common = list(_common_tables(node, first))
    text = select.sql(dialect=DuckDB)
    return f"WITH RECURSIVE {', '.join(common)} {text}" if common else text


def _common_tables(node: exp.Expr, first: exp.Expr | None) -> Iterator[str]:
    own = node.find_ancestor(exp.CTE)
    clauses = [node.args.get("with_")]
    parent = node.parent
    while parent is not None:
        clauses.append(parent.args.get("with_"))
        parent = parent.parent
    for clause in clauses:
        for table in clause.expressions if clause is not None else ():
            if table is not own:
                yield table.sql(dialect=DuckDB)
            elif first is not None and own is not None:
                begun = own.copy()
                begun.set("this", first.copy())
                yield begun.sql(dialect=DuckDB)
