"""Runs PerfettoSQL on Python's sqlite3."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any

from stretto.analysis import raw_tables
from stretto.analysis.interruption import Turns
from stretto.analysis.query_result import RowsResult
from stretto.analysis.sql import inspection
from stretto.analysis.sql.advice import FUNCTIONS, Names
from stretto.analysis.sql.declarations import (
    check_columns,
    check_index,
    check_returned,
    check_variables,
)
from stretto.analysis.sql.errors import (
    SEVERAL_ROWS,
    TOO_DEEP,
    QueryError,
    UnknownNameError,
    located,
    several_columns,
)
from stretto.analysis.sql.explanation import Failure, explained, in_text
from stretto.analysis.sql.library import Library
from stretto.analysis.sql.macros import Macro, expand
from stretto.analysis.sql.span_join import span_join
from stretto.analysis.sql.statements import Statement, statements
from stretto.analysis.sql.syntax import check_syntax
from stretto.analysis.sql.tokens import tokenize
from stretto.analysis.sql_views import TABLES
from stretto.analysis.sqlite.functions import TraceFunctions, add_functions
from stretto.analysis.sqlite.row_ids import RowIds, without_row_id
from stretto.analysis.sqlite.table_functions import check_recursion, replace_table_functions
from stretto.analysis.sqlite.version import with_version
from stretto.analysis.sqlite.views import views

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stretto import _native
    from stretto.analysis.query_result import QueryResult
    from stretto.analysis.raw_tables import RawTables

_MISSING_TABLE = re.compile(r"no such table: (?:main\.)?(\S+)")
_IN_FUNCTION = re.compile("user-defined (function|aggregate)")
_INDEXES = {
    "_slice": ("id", "parent_id", "track_id"),
    "flow": ("id", "slice_in", "slice_out"),
    "__intrinsic_args": ("arg_set_id",),
    "__intrinsic_track": ("id",),
    "thread": ("utid",),
    "process": ("upid",),
}
"""The columns by which tables are searched."""


class SqliteEngine:
    """Answers queries by SQLite.

    Args:
        importer: The trace.
        absent: The statements that create tables without rows, by the tables' names.
        raw: The raw events, which become tables when a statement names one of them.
    """

    def __init__(
        self, importer: _native.TraceImporter, absent: Mapping[str, str], raw: RawTables
    ) -> None:
        self._importer = importer
        self.turns = Turns(self.interrupt)
        self._raw: RawTables | None = raw
        self._tables = {TABLES.get(name, name): name for name in importer.tables()}
        # Threads call one after the other, but not always the same one.
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._row_ids = RowIds()
        self._connection.set_authorizer(self._row_ids.authorize)
        self._connection.executescript(views())
        for name, statement in absent.items():
            if name not in self._tables:
                self._connection.execute(statement)
                self._row_ids.hide(name)
        self._failed = ""
        """What is wrong, as a function told: SQLite drops the text of errors in functions."""
        add_functions(self._connection, self._fail)
        self._trace_functions = TraceFunctions(importer, self._bounds)
        self._trace_functions.add_to(self._connection)
        self._library = Library()
        self._schema = inspection.Schema(
            self._public_tables, self._typed_columns, self._library.names
        )
        self._macros: dict[str, Macro] = {}
        self._functions: dict[str, Statement] = {}
        self._scalars: set[str] = set()
        self.query("include perfetto module prelude")

    def query(self, sql: str) -> QueryResult:
        """Run statements, and return the result of the last one.

        Raises:
            QueryError: A statement is wrong, or can't be executed.
        """
        result = None
        for statement in statements(sql):
            try:
                check_syntax(sql, statement, self._macros)
                self._failed = ""
                result = self._execute(statement)
            except (sqlite3.Error, UnknownNameError) as error:
                said = self._said(error, statement.text)
                failure = Failure(said, statement, sql, partial(self._again, statement))
                raise with_version(explained(failure, self._names_of(sql))) from error
            except RecursionError as error:
                raise located(TOO_DEEP, sql, statement.start) from error
            except QueryError as error:
                raise in_text(error, statement, sql) from error
        if result is None:
            raise QueryError("there is no statement")
        return result

    def _again(self, statement: Statement, sql: str) -> str:
        """Run a statement that failed with another text; return the message."""
        try:
            self._execute(statement._replace(text=sql))
        except (sqlite3.Error, UnknownNameError) as error:
            return self._said(error, sql)
        except (QueryError, RecursionError):
            pass
        return ""

    def _fail(self, problem: str) -> None:
        self._failed = problem

    def _said(self, error: Exception, sql: str) -> str:
        """Return what SQLite says of an error; of one in the user's function what that says."""
        in_function = self._failed and _IN_FUNCTION.search(str(error))
        return self._failed if in_function else without_row_id(str(error), sql)

    def add_modules(self, texts: Mapping[str, str]) -> None:
        """Add modules, given as SQL by name; they replace modules of the same names."""
        self._library.add(texts)

    def interrupt(self) -> None:
        """End the query that another thread runs."""
        self._connection.interrupt()

    def close(self) -> None:
        """Free the tables."""
        self._connection.close()

    def _execute(self, statement: Statement) -> RowsResult:
        kind = statement.kind
        if kind in inspection.KINDS:
            return inspection.inspect(kind, statement.name, self._schema)
        if kind == "include":
            self._include(statement.name)
        elif kind == "macro":
            self._create_macro(statement)
        elif kind == "function":
            self._create_function(statement)
        elif kind == "table function":
            self._check_new(statement, self._functions)
            function = statement._replace(text=expand(statement.text, self._macros))
            check_variables(statement.name, statement.parameters, function.text)
            check_recursion(function, self._functions)
            check_returned(statement.name, statement.columns, function.text)
            self._functions[statement.name.lower()] = function
        elif kind == "drop index":
            self._connection.execute(f'drop index "{statement.parameters[0]}"')
        elif kind == "index":
            self._create_index(statement)
        elif kind in ("span join", "new span join"):
            query = span_join(expand(statement.text, self._macros), self._columns_of)
            created = "table" if kind == "span join" else "table if not exists"
            self._run(f'create {created} "{statement.name}" as {query}')
            self._row_ids.hide(statement.name)
        elif kind == "sql":
            return self._run(self._expanded(statement.text))
        else:
            self._create(statement)
        return RowsResult((), [])

    def _create_index(self, statement: Statement) -> None:
        (name,) = statement.parameters
        check_index(statement.columns, self._columns_of(statement.name))
        columns = ", ".join(f'"{column}"' for column in statement.columns)
        if statement.replaces:
            self._run(f'drop index if exists "{name}"')
        self._run(f'create index "{name}" on "{statement.name}" ({columns})')

    def _expanded(self, text: str) -> str:
        return replace_table_functions(expand(text, self._macros), self._functions)

    def _run(self, sql: str, values: Mapping[str, Any] | None = None) -> RowsResult:
        """Execute a statement; each table that SQLite misses is copied from the importer."""
        while True:
            try:
                cursor = self._connection.execute(sql, values or {})
                break
            except sqlite3.OperationalError as error:
                missing = _MISSING_TABLE.search(str(error))
                if missing is None or not self._copy(missing[1]):
                    raise
        columns = [each[0] for each in cursor.description or ()]
        return RowsResult(columns, cursor.fetchall())

    def _copy(self, table: str) -> bool:
        """Copy a table of the importer; return False if there is no such table."""
        if self._raw is not None and table.lower() in raw_tables.NAMES:
            self._make_raw_tables(self._raw.read())
            return True
        name = next((each for each in self._tables if each.lower() == table.lower()), None)
        if name is None:
            return False
        self._insert(self._importer, self._tables.pop(name), name)
        for column in _INDEXES.get(name, ()):
            self._connection.execute(f'create index "_{name}_{column}" on "{name}" ("{column}")')
        return True

    def _insert(self, importer: _native.TraceImporter, table: str, name: str) -> None:
        columns, rows = importer.rows(table)
        listed = ", ".join(f'"{column}"' for column in columns)
        self._connection.execute(f'create table "{name}" ({listed})')
        self._row_ids.hide(name)
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f'insert into "{name}" values ({marks})', rows)

    def _make_raw_tables(self, importer: _native.TraceImporter) -> None:
        self._raw = None
        ((first_set,),) = self._run("select count(*) from __intrinsic_args").fetchall()
        for table in raw_tables.TABLES:
            self._insert(importer, table, "_imported")
            query = raw_tables.table_query(table, "_imported", first_set)
            self._connection.execute(f"create table {table} as {query}")
            self._row_ids.hide(table)
            self._connection.execute("drop table _imported")
        self._insert(importer, raw_tables.ARGS, "_imported")
        query = raw_tables.args_query("_imported", first_set)
        self._connection.execute(f"insert into __intrinsic_args {query}")
        self._trace_functions.add_args(self._run(query).fetchall())
        self._connection.execute("drop table _imported")
        self._connection.executescript(raw_tables.VIEWS)

    def _bounds(self) -> tuple[int, int]:
        ((start, end),) = self._run("select start_ts, end_ts from trace_bounds").fetchall()
        return start, end

    def _columns_of(self, table: str) -> list[str]:
        return list(self._run(f'select * from "{table}" limit 0').columns)

    def _create(self, statement: Statement) -> None:
        query = self._expanded(statement.text)
        found = list(self._run(f"select * from ({query}) limit 0").columns)
        if statement.kind == "table":
            found = [_as_written(column, found) for column in found]
        check_columns(statement.name, statement.kind, statement.columns, found)
        if statement.replaces:
            self._run(f'drop {statement.kind} if exists "{statement.name}"')
        self._run(f'create {statement.kind} "{statement.name}" as {query}')
        self._row_ids.hide(statement.name)

    def _check_new(self, statement: Statement, known: Iterable[str]) -> None:
        kind = statement.kind.removeprefix("table ")
        if statement.name.lower() in known and not statement.replaces:
            raise QueryError(f"there is a {kind} {statement.name} already: use create or replace")

    def _create_macro(self, statement: Statement) -> None:
        self._check_new(statement, self._macros)
        self._macros[statement.name] = Macro(statement.parameters, statement.text)

    def _create_function(self, statement: Statement) -> None:
        self._check_new(statement, self._scalars)
        body, names = self._expanded(statement.text), statement.parameters
        check_variables(statement.name, names, body)
        # The names of parameters are in lower case; SQLite distinguishes the case.
        body = re.sub(r"\$\w+", lambda found: found[0].lower(), body)

        def call(*values: Any) -> Any:
            try:
                result = self._run(body, dict(zip(names, values, strict=True)))
                return _only_value(statement.name, result)
            except (sqlite3.Error, QueryError) as error:
                self._failed = self._said(error, body)
                raise

        self._connection.create_function(statement.name, len(names), call)
        self._scalars.add(statement.name.lower())

    def _include(self, pattern: str) -> None:
        for text in self._library.include(pattern):
            self.query(text)

    def _names_of(self, sql: str) -> Names:
        words = {token.text.lower() for token in tokenize(sql) if token.kind == "word"}
        columns: dict[str, list[str]] = {}
        for table in self._public_tables():
            with contextlib.suppress(sqlite3.Error):  # a view of a table that is gone
                columns |= {table: self._columns_of(table)} if table.lower() in words else {}
        named = [table for table, found in columns.items() if "name" in found]
        return Names(
            lambda kind: self._known(kind, columns.values()),
            lambda text: self._is_text(text, named),
            self._columns_if_any,
        )

    def _columns_if_any(self, table: str) -> list[str]:
        try:
            return self._columns_of(table)
        except sqlite3.Error:
            return []

    def _known(self, kind: str, columns: Iterable[list[str]]) -> Iterable[str]:
        """Return the names of all functions, of all tables, or of the columns of some tables."""
        if kind == "function":
            return {*FUNCTIONS, *self._scalars, *self._functions}
        if kind == "table":
            return self._public_tables()
        return {name for names in columns for name in names}

    def _public_tables(self) -> list[str]:
        tables = {*self._names("sqlite_schema"), *self._tables}
        return [name for name in tables if not name.startswith(("_", "sqlite_"))]

    def _typed_columns(self, table: str) -> list[tuple[str, str]]:
        """Return a table's columns with the type of the first value, or no type without one."""
        first = 'select typeof("{0}") from "{1}" where "{0}" is not null limit 1'
        return [
            (
                name,
                "".join(row[0].upper() for row in self._run(first.format(name, table)).fetchall()),
            )
            for name in self._columns_of(table)
        ]

    def _is_text(self, text: str, tables: Iterable[str]) -> bool:
        """Return whether a text is the name in a row of these tables, or that of an argument."""
        queries = ["select 1 from __intrinsic_args where key = :text or flat_key = :text"]
        queries += [f'select 1 from "{table}" where name = :text' for table in tables]
        return bool(self._run(" union all ".join(queries) + " limit 1", {"text": text}).fetchall())

    def _names(self, table: str) -> set[str]:
        return {name for (name,) in self._connection.execute(f"select name from {table}")}


def _as_written(column: str, columns: Sequence[str]) -> str:
    """Return the name of a column without the number by which SQLite makes equal names differ."""
    name, colon, number = column.rpartition(":")
    known = [other.lower() for other in columns]
    return name if colon and number.isdecimal() and name.lower() in known else column


def _only_value(function: str, result: RowsResult) -> Any:
    """Return the value of a function's query; NULL if it has no row.

    Raises:
        QueryError: The query has several rows or columns.
    """
    if len(result.columns) > 1:
        raise QueryError(several_columns(function, len(result.columns)))
    rows = result.fetchall()
    if len(rows) > 1:
        raise QueryError(f"{function}{SEVERAL_ROWS}")
    return rows[0][0] if rows else None
