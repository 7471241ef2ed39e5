"""What the rewriter knows about a trace: columns, types of arguments, functions, macros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from stretto.analysis.sql.macros import Macro


_TYPES = {"VARCHAR": "TEXT", "DOUBLE": "REAL", "BLOB": "BLOB"}


class Function(NamedTuple):
    """A function of `create perfetto function`; its arguments are `$x` in the body."""

    parameters: tuple[str, ...]
    body: str
    returns_table: bool


class Catalog:
    """The names that a statement may use.

    Args:
        connection: The connection to DuckDB, with the trace's tables.
        error: The class of DuckDB's errors.
    """

    def __init__(self, connection: Any, error: type[Exception]) -> None:
        self._connection = connection
        self._error = error
        self._arg_macros: dict[str, str] = {}
        self.functions: dict[str, Function] = {}
        self.recursive: set[str] = set()
        self.macros: dict[str, Macro] = {}
        self.untyped: set[str] = set()
        """The user's views, and tables of `create table`, in lower case."""

    def on(self, connection: Any) -> Catalog:
        """Return the same names, for statements on another connection to the database."""
        catalog = Catalog(connection, self._error)
        catalog.functions, catalog.macros = self.functions, self.macros
        catalog.recursive, catalog.untyped = self.recursive, self.untyped
        return catalog

    def has_function(self, name: str) -> bool:
        """Return whether the user made a function of this name, which is in lower case."""
        return name in self.functions or name in self.recursive

    def tables(self) -> list[str]:
        """Return the names of tables and views, without private ones."""
        rows = self._connection.execute(
            "select table_name from information_schema.tables where table_name not like '\\_%' "
            "escape '\\'"
        ).fetchall()
        return [name for (name,) in rows]

    def add_untyped(self, name: str) -> None:
        """Note what `create table` or `create view` makes, unless it exists: then that fails."""
        if name.lower() not in map(str.lower, self.tables()):
            self.untyped.add(name.lower())

    def has_types(self, name: str) -> bool:
        """Return whether a name is that of the trace's tables, or of `create perfetto table`."""
        return name.lower() not in self.untyped and name.lower() in map(str.lower, self.tables())

    def is_view(self, name: str) -> bool:
        """Return whether there is a view of this name."""
        query = "select 1 from duckdb_views() where lower(view_name) = lower($1) limit 1"
        return bool(self._connection.execute(query, [name]).fetchall())

    def columns(self, tables: Collection[str]) -> set[str]:
        """Return the columns of tables, in lower case."""
        rows = self._connection.execute(
            "select distinct lower(column_name) from information_schema.columns "
            "where list_contains($1, lower(table_name))",
            [sorted(tables)],
        ).fetchall()
        return {name for (name,) in rows}

    def columns_of(self, table: str) -> list[tuple[str, str]]:
        """Return the names of a table's columns, and their types as those of SQLite."""
        found = self._connection.sql(f'select * from "{table}" limit 0')
        return [
            (name, _TYPES.get(str(kind), "INTEGER"))
            for name, kind in zip(found.columns, found.types, strict=True)
        ]

    def is_text(self, text: str, tables: Collection[str]) -> bool:
        """Return whether a text is the name in a row of these tables, or that of an argument."""
        named = [table for table in tables if "name" in self.columns([table])]
        queries = [f'select 1 from "{table}" where cast(name as varchar) = $1' for table in named]
        queries.append("select 1 from __intrinsic_args where key = $1 or flat_key = $1")
        found = " union all ".join(queries)
        return bool(self._connection.execute(f"{found} limit 1", [text]).fetchall())

    def types(self, select: str) -> list[str] | None:
        """Return the types of the columns of a select of DuckDB; None if it can't be bound."""
        try:
            return [str(kind) for kind in self._connection.sql(select).types]
        except self._error:
            return None

    def arg_macro(self, key: str) -> str:
        """Return the macro that extracts an argument; it depends on the types of its values."""
        if key not in self._arg_macros:
            rows = self._connection.execute(
                "select distinct value_type from __intrinsic_args where key = $1", [key]
            ).fetchall()
            self._arg_macros[key] = _macro_of({kind for (kind,) in rows})
        return self._arg_macros[key]

    def forget_args(self) -> None:
        """Forget the types of arguments, as there are more of them."""
        self._arg_macros.clear()


def _macro_of(kinds: set[str]) -> str:
    if not kinds:
        return "_arg_absent"
    if kinds <= {"int", "uint", "pointer", "bool"}:
        return "_arg_int"
    if kinds <= {"int", "uint", "pointer", "bool", "real"}:
        return "_arg_real"
    return "_arg_text" if kinds <= {"string", "json"} else "_arg_any"
