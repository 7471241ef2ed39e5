"""Answers queries by DuckDB: the importer's tables, and PerfettoSQL's views and macros."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from stretto.analysis import raw_tables
from stretto.analysis.interruption import Turns
from stretto.analysis.query_result import QueryResult, RowsResult, check_added, load_package
from stretto.analysis.sql.errors import CLOSED, QueryError
from stretto.analysis.sql_views import ARGS, TABLES, VIEWS
from stretto.base.private_files import private_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stretto import _native
    from stretto.analysis.raw_tables import RawTables

MISSING = (
    "SQL on traces needs {}: `pip install 'stretto[analysis]'` installs it; the engine sqlite "
    "needs no package"
)

COMPRESSION = """
set disabled_compression_methods =
    'fsst,zstd,alp,alprd,chimp,patas,roaring,rle,bitpacking,dictionary';
checkpoint;
"""
"""Compresses texts to dictionaries, as conditions and groups are then computed once per text.

Numbers aren't compressed: this would take longer, and no query is faster by it.
"""

_COPY = "copy rows to {} (format parquet, use_tmp_file false)"
"""Writes to the file that is there; otherwise DuckDB would replace it by one that all can read."""

_REGISTERED = re.compile(r"^.*? object registered as 'rows' failed: (?:\w+Exception: )?", re.DOTALL)
"""What DuckDB puts before an error of the rows that it reads from the other connection."""

CONFINEMENT = """
set temp_directory = '{}';
set enable_external_access = false;
set lock_configuration = true;
"""
"""Keeps SQL away from the user's files: a query, or a module, may come from somebody else.

Only what exceeds the memory is written, to a folder that no statement can guess.
"""


class DuckdbResult(QueryResult):
    """The result of a query; DuckDB computes the rows when they are taken."""

    def __init__(
        self,
        relation: Any,
        error: type[Exception],
        explain: Callable[[str], QueryError],
        turns: Turns,
    ) -> None:
        self._relation = relation
        self._error = error
        self._explain = explain
        self._turns = turns
        self.columns: tuple[str, ...] = tuple(relation.columns)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows as tuples."""
        rows: list[tuple[Any, ...]] = self._result("fetchall")
        return rows

    def _result(self, method: str) -> Any:
        return self._turns.run(lambda: self._call(method))

    def _call(self, method: str) -> Any:
        try:
            return getattr(self._relation, method)()
        except self._error as error:
            raise self._explain(str(error)) from error

    def arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table` (needs pyarrow)."""
        load_package("pyarrow")
        return self._result("to_arrow_table")

    def pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame` (needs pandas)."""
        load_package("pandas")
        return self._result("df")

    def polars(self) -> Any:
        """Return the rows as a `polars.DataFrame` (needs polars)."""
        load_package("polars")
        load_package("pyarrow")  # DuckDB hands the rows over as Arrow.
        return self._result("pl")

    def parquet(self, path: str | os.PathLike[str], **added: object) -> None:
        """Write the rows to a Parquet file."""
        check_added(self.columns, added)
        self._turns.run(lambda: self._write(path, added))

    def _write(self, path: str | os.PathLike[str], added: Mapping[str, object]) -> None:
        shown = [
            # Sums of integers are integers of 128 bits, which Parquet doesn't have.
            f"{f'cast(#{i} as bigint)' if str(kind) == 'HUGEINT' else f'#{i}'} as {_quoted(name)}"
            for i, (name, kind) in enumerate(
                zip(self.columns, self._relation.types, strict=True), 1
            )
        ]
        shown += [f"{_literal(value)} as {_quoted(name)}" for name, value in added.items()]
        rows = _ArrowStream(self._relation.project(", ".join(shown)))
        # The trace's own connection may not write files.
        with private_file(path), load_duckdb().connect(":memory:") as writer:
            try:
                writer.register("rows", rows)
                writer.execute(_COPY.format(_literal(os.fspath(path))))
            except load_duckdb().IOException as error:
                raise OSError(str(error)) from error
            except self._error as error:
                raise self._explain(_REGISTERED.sub("", str(error))) from error


class _ArrowStream:
    """The rows of a relation, in a form that another connection reads."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._relation.__arrow_c_stream__(requested_schema)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return f"cast('{value}' as {_LITERALS[type(value)]})"
    return "'" + str(value).replace("'", "''") + "'"


_LITERALS = {bool: "boolean", int: "bigint", float: "double"}


class DuckdbEngine:
    """A trace in DuckDB.

    Args:
        importer: The trace.
        absent: The statements that create tables without rows, by the tables' names.
        raw: The raw events, which become tables when a statement names one of them.
        threads: The number of DuckDB's threads; None for one per core.

    Raises:
        ModuleNotFoundError: DuckDB or sqlglot isn't installed.
    """

    def __init__(
        self,
        importer: _native.TraceImporter,
        absent: Mapping[str, str],
        raw: RawTables,
        threads: int | None = None,
    ) -> None:
        self._closed = False
        self.turns = Turns(self.interrupt)
        self._duckdb = load_duckdb()
        try:
            from stretto.analysis.sql.session import Session
        except ModuleNotFoundError as error:
            raise _missing(error) from error
        config = {"python_enable_replacements": False} | ({"threads": threads} if threads else {})
        self._connection: Any = self._duckdb.connect(":memory:", config=config)
        for table in importer.tables():
            self._connection.register("imported", importer.arrow(table))
            name = TABLES.get(table, table)
            self._connection.execute(f"create table {name} as {self._wide('imported')}")
            self._connection.unregister("imported")
        self._connection.execute(COMPRESSION + ARGS + VIEWS)
        existing = {row[0] for row in self._connection.execute("show tables").fetchall()}
        for name, statement in absent.items():
            if name not in existing:
                self._connection.execute(statement)
        self._raw: RawTables | None = raw
        self._session = Session(self._connection, self._duckdb.Error, self._prepare)
        spill = Path(gettempdir(), f"stretto-{token_hex(16)}")
        self._connection.execute(CONFINEMENT.format(str(spill).replace("'", "''")))

    def _wide(self, table: str) -> str:
        """Return the query of a table, with integers of 64 bits, as PerfettoSQL's are."""
        relation = self._connection.table(table)
        columns = [
            f'cast("{name}" as bigint) as "{name}"' if str(kind) == "INTEGER" else f'"{name}"'
            for name, kind in zip(relation.columns, relation.types, strict=True)
        ]
        return f"select {', '.join(columns)} from {table}"

    def _prepare(self, sql: str) -> bool:
        """Make the tables of raw events if a statement names one; return whether they are new."""
        if self._raw is None or not raw_tables.names_raw_table(sql):
            return False
        importer = self._raw.read()
        self._raw = None
        ((first_set,),) = self._rows("select count(*) from __intrinsic_args")
        for table in raw_tables.TABLES:
            self._connection.register("imported", importer.arrow(table))
            self._connection.execute(
                f"create table {table} as with wide as ({self._wide('imported')}) "
                + raw_tables.table_query(table, "wide", first_set)
            )
            self._connection.unregister("imported")
        self._connection.register("imported", importer.arrow(raw_tables.ARGS))
        query = raw_tables.args_query("imported", first_set)
        self._connection.execute(f"insert into __intrinsic_args {query}")
        self._connection.unregister("imported")
        self._connection.execute(raw_tables.VIEWS)
        return True

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        return rows

    def query(self, sql: str) -> QueryResult:
        """Run statements, and return the result of the last one.

        Raises:
            QueryError: A statement is wrong, or can't be executed.
        """
        relation = self._session.run(sql)
        if relation is None:
            return RowsResult((), [])
        if isinstance(relation, RowsResult):
            return relation
        return DuckdbResult(
            relation,
            self._duckdb.Error,
            lambda message: self._explained(message, sql),
            self.turns,
        )

    def _explained(self, message: str, sql: str) -> QueryError:
        return QueryError(CLOSED) if self._closed else self._session.explained(message, sql)

    def add_modules(self, texts: Mapping[str, str]) -> None:
        """Add modules, given as SQL by name; they replace modules of the same names."""
        self._session.add_modules(texts)

    def interrupt(self) -> None:
        """End the query that another thread runs."""
        self._connection.interrupt()

    def close(self) -> None:
        """Free the tables."""
        self._closed = True
        self._connection.close()


def load_duckdb() -> Any:
    """Return the module duckdb.

    Raises:
        ModuleNotFoundError: It isn't installed; the message says how to install it.
    """
    try:
        return import_module("duckdb")
    except ModuleNotFoundError as error:
        raise _missing(error) from error


def _missing(error: ModuleNotFoundError) -> ModuleNotFoundError:
    return ModuleNotFoundError(MISSING.format(error.name), name=error.name)
