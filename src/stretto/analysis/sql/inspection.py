"""Statements that show what there is: `show tables`, `describe slice`, `.schema slice`.

They are those of other shells. Both engines have them, with the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.query_result import RowsResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

TABLES, MODULES, COLUMNS, TABLE_INFO, ALL_COLUMNS = KINDS = (
    "show tables",
    "show modules",
    "describe",
    "table info",
    "schema",
)
"""The kinds of these statements (`statements.py:Statement`)."""

FORMS = "show tables, show modules, describe TABLE"
"""What an error suggests."""


def inspection(words: Sequence[str]) -> tuple[str, str] | None:
    """Return the kind and the table of a statement that shows what there is; None for others.

    Args:
        words: The statement's tokens; keywords may be in any case.
    """
    match [word.lower() for word in words]:
        case ["show", "tables" | "views"] | [".", "tables"] | ["pragma", "table_list"]:
            return TABLES, ""
        case ["show", "modules"]:
            return MODULES, ""
        case [".", "schema"]:
            return ALL_COLUMNS, ""
        case (
            ["describe" | "desc", _]
            | [".", "schema", _]
            | ["describe" | "desc", "table", _]
            | ["show", "columns", "from" | "in", _]
        ):
            return COLUMNS, words[-1].strip("'\"`[]")
        case ["pragma", "table_info" | "table_xinfo", "(", _, ")"]:
            return TABLE_INFO, words[3].strip("'\"`[]")
    return None


class Schema(NamedTuple):
    """The names that an engine has.

    Attributes:
        tables: Returns the names of tables and views, without private ones.
        columns: Returns the names and types of a table's columns; the types are SQLite's.
        modules: Returns the names of the modules.
    """

    tables: Callable[[], Iterable[str]]
    columns: Callable[[str], list[tuple[str, str]]]
    modules: Callable[[], Iterable[str]]


def inspect(kind: str, table: str, schema: Schema) -> RowsResult:
    """Return the result of a statement.

    Args:
        kind: One of `KINDS`.
        table: The table of `describe` and `table info`.
        schema: The names that the engine has.
    """
    if kind in (TABLES, MODULES):
        # Raw events become a table when a statement names it.
        names = {*schema.tables(), "ftrace_event"} if kind == TABLES else schema.modules()
        return RowsResult(("name",), [(name,) for name in sorted(names)])
    if kind == COLUMNS:
        return RowsResult(("name", "type"), list(schema.columns(table)))
    if kind == ALL_COLUMNS:
        rows = [(name, *each) for name in sorted(schema.tables()) for each in schema.columns(name)]
        return RowsResult(("table", "name", "type"), rows)
    columns = ("cid", "name", "type", "notnull", "dflt_value", "pk")
    listed = enumerate(schema.columns(table))
    return RowsResult(columns, [(i, name, kind, 0, None, 0) for i, (name, kind) in listed])
