"""SQL on a trace: the importer's tables in DuckDB."""

from __future__ import annotations

import os
from collections import namedtuple
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stretto.analysis.sql.absent import absent_tables
from stretto.analysis.sql.errors import QueryError
from stretto.analysis.sql_views import TABLES, VIEWS
from stretto.analysis.trace_tables import UNREAD, import_trace, statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import BinaryIO, Self


MISSING = "SQL on traces needs {}: `pip install 'stretto[analysis]'` installs it"


class QueryResult:
    """The result of a query. Iterating over it gives rows whose values are attributes.

    A column that has the name of an earlier column, or a keyword as its name, is an attribute by
    its position: `_1`.

    The rows can be taken once: by iterating, or by one of the methods.

    Attributes:
        columns: the names of the columns.
    """

    def __init__(
        self, relation: Any, error: type[Exception], explain: Callable[[str], QueryError]
    ) -> None:
        self._relation = relation
        self._error = error
        self._explain = explain
        self.columns: tuple[str, ...] = tuple(relation.columns)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows as tuples.

        Raises:
            QueryError: The query can't be executed. The other methods raise this error, too.
        """
        rows: list[tuple[Any, ...]] = self._result("fetchall")
        return rows

    def _result(self, method: str) -> Any:
        try:
            return getattr(self._relation, method)()
        except self._error as error:
            raise self._explain(str(error)) from error

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows, as named tuples."""
        names = [_identifier(name) for name in self.columns]
        row_class: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024
        yield from map(row_class._make, self.fetchall())

    def arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table` (needs pyarrow)."""
        return self._result("to_arrow_table")

    def pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame` (needs pandas)."""
        return self._result("df")

    def parquet(self, path: str | os.PathLike[str], **added: object) -> None:
        """Write the rows to a Parquet file.

        Args:
            path: The file.
            added: Columns that have one value in all rows: a text, a number, a bool or None.

        Raises:
            QueryError: The query can't be executed, or has a column with the name of an added one.
        """
        if twice := added.keys() & set(self.columns):
            raise QueryError(f"the column {min(twice)} is added to each row: give another name")
        shown = [
            # Sums of integers are integers of 128 bits, which Parquet doesn't have.
            f"{f'cast(#{i} as bigint)' if str(kind) == 'HUGEINT' else f'#{i}'} as {_quoted(name)}"
            for i, (name, kind) in enumerate(
                zip(self.columns, self._relation.types, strict=True), 1
            )
        ]
        shown += [f"{_literal(value)} as {_quoted(name)}" for name, value in added.items()]
        try:
            self._relation.project(", ".join(shown)).write_parquet(os.fspath(path))
        except self._error as error:
            raise self._explain(str(error)) from error

    as_pandas_dataframe = pandas
    """The name of this method in the package perfetto."""

    def polars(self) -> Any:
        """Return the rows as a `polars.DataFrame` (needs polars)."""
        return self._result("pl")

    as_polars_dataframe = polars
    """The name of this method in the package perfetto."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, as in the package perfetto."""
        return list(self.columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return f"cast('{value}' as {_LITERALS[type(value)]})"
    return "'" + str(value).replace("'", "''") + "'"


_LITERALS = {bool: "boolean", int: "bigint", float: "double"}


def _identifier(name: str) -> str:
    """Return a name for a field of a named tuple: `count_star()` becomes `count_star`."""
    cleaned = "".join(c if c.isalnum() else "_" for c in name).strip("_")
    return cleaned if cleaned.isidentifier() else f"c_{cleaned}"


class TraceProcessor:
    """A trace as tables that are queried by SQL.

        with TraceProcessor("trace.pftrace") as trace:
            for row in trace.query("select name, dur from slice order by dur desc limit 5"):
                print(row.name, row.dur)

    The tables have the names and columns of Perfetto's trace processor; the dialect is PerfettoSQL.

    Args:
        trace: A path, the bytes of a trace, or an open file. Perfetto's or Fuchsia's format,
            compressed by gzip or not.
        watch: Called with each piece of the trace that is read.
        metadata: Facts about the trace, by name: the attribute `metadata`.
        threads: The number of DuckDB's threads; None for one per core.

    Raises:
        ModuleNotFoundError: DuckDB or sqlglot isn't installed.
        OSError: The file can't be read.
        DecodeError: The file is not a trace.
    """

    def __init__(
        self,
        trace: str | os.PathLike[str] | bytes | BinaryIO,
        watch: Callable[[bytes], object] = lambda _: None,
        *,
        metadata: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        self.metadata = dict(metadata or {})
        try:
            self._duckdb: Any = import_module("duckdb")
            from stretto.analysis.sql.session import Session
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(MISSING.format(error.name), name=error.name) from error
        importer = import_trace(trace, watch)
        self._connection: Any = self._duckdb.connect(
            ":memory:", config={} if threads is None else {"threads": threads}
        )
        for table in importer.tables():
            self._connection.register("imported", importer.arrow(table))
            name = TABLES.get(table, table)
            self._connection.execute(f"create table {name} as {self._wide('imported')}")
            self._connection.unregister("imported")
        self._connection.execute(VIEWS)
        if not any(statistics(importer).get(name) for name in UNREAD):
            self._create_absent_tables()
        self._session = Session(self._connection, self._duckdb.Error)

    def _create_absent_tables(self) -> None:
        existing = {row[0] for row in self._connection.execute("show tables").fetchall()}
        has_kernel_events = self._connection.execute("from cpu limit 1").fetchall()
        for name, statement in absent_tables().items():
            if name not in existing and not (has_kernel_events and name == "ftrace_event"):
                self._connection.execute(statement)

    def _wide(self, table: str) -> str:
        """Return the query of a table, with integers of 64 bits, as PerfettoSQL's are."""
        relation = self._connection.table(table)
        columns = [
            f'cast("{name}" as bigint) as "{name}"' if str(kind) == "INTEGER" else f'"{name}"'
            for name, kind in zip(relation.columns, relation.types, strict=True)
        ]
        return f"select {', '.join(columns)} from {table}"

    def query(self, sql: str) -> QueryResult:
        """Run SQL statements, and return the result of the last one.

        Raises:
            QueryError: A statement is wrong, or can't be executed.
        """
        relation = self._session.run(sql)
        has_result = relation is not None
        if not has_result:
            relation = self._connection.sql("select 1 as done where false")
        result = QueryResult(
            relation, self._duckdb.Error, lambda message: self._session.explained(message, sql)
        )
        if not has_result:
            result.columns = ()
        return result

    def add_modules(self, texts: Mapping[str, str]) -> None:
        """Add modules for `include perfetto module`.

        Args:
            texts: The SQL of each module, by its name, such as `mine.slices`.
        """
        self._session.add_modules(texts)

    def close(self) -> None:
        """Free the tables."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Free the tables."""
        self.close()
