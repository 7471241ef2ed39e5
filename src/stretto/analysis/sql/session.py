"""Runs PerfettoSQL on a connection to DuckDB."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from stretto.analysis.sql import inspection
from stretto.analysis.sql.advice import FUNCTIONS, Names
from stretto.analysis.sql.catalog import Catalog, Function
from stretto.analysis.sql.declarations import (
    check_columns,
    check_index,
    check_returned,
    check_variables,
)
from stretto.analysis.sql.errors import TOO_DEEP, QueryError, UnknownNameError, located
from stretto.analysis.sql.explanation import Failure, explained, in_text
from stretto.analysis.sql.library import Library
from stretto.analysis.sql.macros import Macro, expand
from stretto.analysis.sql.names import unknown_column
from stretto.analysis.sql.recursion import RecursiveFunctions, calls_itself
from stretto.analysis.sql.rewriter import parse, rewrite
from stretto.analysis.sql.runtime import RUNTIME
from stretto.analysis.sql.span_join import span_join
from stretto.analysis.sql.statements import Statement, statements
from stretto.analysis.sql.syntax import check_syntax
from stretto.analysis.sql.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_IN_FUNCTION = re.compile(
    r"(Invalid Input Error: )?Python exception occurred while executing the UDF: \w+: "
)
"""What DuckDB puts before the messages of functions in Python."""
_MACRO_ERRORS = ("multiple overloads", "INTERNAL Error")
"""Parts of DuckDB's messages for statements in which it can't choose the form of a macro."""
_MIXED = "Cannot mix values of type"
"""A part of DuckDB's message for values of several types where it wants one."""
MAX_REWRITTEN = 100
"""The number of queries that are kept as DuckDB runs them."""
_CHANGES = ("CREATE ", "DROP ", "INSERT ", "UPDATE ", "DELETE ", "ALTER ")
"""Statements without a result."""


class Session:
    """Runs statements on a trace, and keeps what they create and which modules they include.

    Args:
        connection: The connection to DuckDB, with the trace's tables and views.
        error: The class of DuckDB's errors.
        prepare: Called with each statement before it runs. It may make tables that the statement
            names; it returns True if there are more arguments since then.
    """

    def __init__(
        self, connection: Any, error: type[Exception], prepare: Callable[[str], bool]
    ) -> None:
        self._prepare = prepare
        self._connection = connection
        self._error = error
        self._library = Library(for_duckdb=True)
        self._indexes: set[tuple[str, str]] = set()
        # Queries that have run, in DuckDB's dialect, until a statement changes what their names
        # mean: to rewrite one can take longer than to run it.
        self._rewritten: dict[str, str] = {}
        self.catalog = Catalog(connection, error)
        self._schema = inspection.Schema(
            self.catalog.tables, self.catalog.columns_of, self._library.names
        )
        self._recursive = RecursiveFunctions(connection, self.catalog)
        connection.execute(RUNTIME)
        self.run("include perfetto module prelude")

    def run(self, text: str) -> Any:
        """Run statements; return the relation or rows of the last one, or None without a result.

        Raises:
            QueryError: A statement is wrong, or can't be executed.
        """
        relation = None
        found = False
        for statement in statements(text):
            found = True
            try:
                check_syntax(text, statement, self.catalog.macros)
                relation = self._execute(statement)
            except (self._error, UnknownNameError) as error:
                raise self.explained(str(error), text, statement) from error
            except RecursionError as error:
                raise located(TOO_DEEP, text, statement.start) from error
            except QueryError as error:
                raise in_text(error, statement, text) from error
        if not found:
            raise QueryError("there is no statement")
        return relation

    def explained(self, message: str, text: str, statement: Statement | None = None) -> QueryError:
        """Return DuckDB's message as an error that shows the position in the user's text.

        Args:
            message: DuckDB's message.
            text: The user's text.
            statement: The statement; None if it is the last one.
        """
        if statement is None:
            statement = list(statements(text))[-1]
        words = {token.text.lower() for token in tokenize(text) if token.kind == "word"}
        tables = words.intersection(name.lower() for name in self.catalog.tables())
        names = Names(
            lambda kind: self._known(kind, tables),
            lambda name: self.catalog.is_text(name, tables),
            lambda table: self.catalog.columns([table.lower()]),
        )
        said = self._clear(message, statement)
        return explained(Failure(said, statement, text, partial(self._again, statement)), names)

    def _clear(self, message: str, statement: Statement) -> str:
        """Return DuckDB's message without what it says of Python, or the column that it means."""
        message = _IN_FUNCTION.sub("", message).partition("\n\nStack Trace")[0]
        if any(sign in message for sign in _MACRO_ERRORS):
            return self._unknown_column(statement) or message
        return message

    def _again(self, statement: Statement, sql: str) -> str:
        """Run a statement that failed with another text; return the message."""
        changed = statement._replace(text=sql)
        try:
            self._execute(changed)
        except (self._error, UnknownNameError) as error:
            return self._clear(str(error), changed)
        except (QueryError, RecursionError):
            pass
        return ""

    def _unknown_column(self, statement: Statement) -> str:
        """Return DuckDB's message about a column that is unknown; empty if there is none."""
        with suppress(QueryError):
            tree = parse(expand(statement.text, self.catalog.macros), self.catalog.functions)
            name = unknown_column(tree, self.catalog)
            return f'Referenced column "{name}" not found' if name else ""
        return ""

    def _known(self, kind: str, tables: set[str]) -> Iterable[str]:
        if kind == "table":
            return self.catalog.tables()
        if kind == "function":
            return {*FUNCTIONS, *self.catalog.functions}
        return self.catalog.columns(tables)

    def _execute(self, statement: Statement) -> Any:
        self._recursive.forget_values()
        if self._prepare(statement.text):
            self.catalog.forget_args()
            self._rewritten.clear()
        if statement.kind in inspection.KINDS:
            return inspection.inspect(statement.kind, statement.name, self._schema)
        if statement.kind != "sql":
            self._rewritten.clear()
        elif rewritten := self._rewritten.get(statement.text):
            return self._connection.sql(rewritten)
        return self._execute_sql(statement)

    def _execute_sql(self, statement: Statement) -> Any:
        kind = statement.kind
        if kind == "include":
            return self._include(statement.name)
        if kind == "macro":
            return self._create_macro(statement)
        if kind in ("function", "table function"):
            return self._create_function(statement)
        if kind in ("index", "drop index"):
            return self._index(statement)
        if kind in ("span join", "new span join"):
            query = span_join(expand(statement.text, self.catalog.macros), self._columns_of)
            created = "table" if kind == "span join" else "table if not exists"
            self._connection.execute(f'create {created} "{statement.name}" as {query}')
            return None
        expanded = expand(statement.text, self.catalog.macros)
        try:
            return self._run_sql(statement, rewrite(expanded, self.catalog))
        except self._error as error:
            if _MIXED in str(error):
                return self._run_sql(statement, rewrite(expanded, self.catalog, mixes_types=True))
            if not any(sign in str(error) for sign in _MACRO_ERRORS):
                raise
            return self._run_sql(statement, rewrite(expanded, self.catalog, with_macros=False))

    def _index(self, statement: Statement) -> None:
        """Note or forget an index: only its names are checked, DuckDB needs none."""
        check_index(statement.columns, self._columns_of(statement.name))
        if self.catalog.is_view(statement.name):
            raise QueryError("views may not be indexed")
        index = statement.parameters[0], statement.name.lower()
        if statement.kind == "index":
            if index in self._indexes and not statement.replaces:
                raise QueryError(f"there is an index {index[0]} already: use create or replace")
            self._indexes.add(index)
        elif index in self._indexes:
            self._indexes.remove(index)
        else:
            raise QueryError(f"there is no index {index[0]} on {statement.name}")

    def _run_sql(self, statement: Statement, sql: str) -> Any:
        if statement.kind != "sql":
            self._create(statement, sql)
            return None
        if sql.startswith(_CHANGES):
            self._rewritten.clear()
            self._connection.execute(sql)
            return None
        if sql.startswith(("SELECT", "WITH")):
            self._connection.execute(f"explain {sql}")  # Reports errors before rows are read.
            if len(self._rewritten) == MAX_REWRITTEN:
                self._rewritten.clear()
            self._rewritten[statement.text] = sql
        return self._connection.sql(sql)

    def _columns_of(self, table: str) -> list[str]:
        columns: list[str] = self._connection.sql(f'select * from "{table}" limit 0').columns
        return columns

    def _create(self, statement: Statement, sql: str) -> None:
        replace = "or replace " if statement.replaces else ""
        found = self._connection.sql(sql).columns
        check_columns(statement.name, statement.kind, statement.columns, found)
        self._connection.execute(f'create {replace}{statement.kind} "{statement.name}" as {sql}')
        self.catalog.untyped.discard(statement.name.lower())
        if statement.kind == "view":
            self.catalog.untyped.add(statement.name.lower())

    def _create_macro(self, statement: Statement) -> None:
        if statement.name in self.catalog.macros and not statement.replaces:
            raise QueryError(f"there is a macro {statement.name} already: use create or replace")
        self.catalog.macros[statement.name] = Macro(statement.parameters, statement.text)

    def _create_function(self, statement: Statement) -> None:
        if self.catalog.has_function(statement.name) and not statement.replaces:
            raise QueryError(f"there is a function {statement.name} already: use create or replace")
        body = expand(statement.text, self.catalog.macros)
        check_variables(statement.name, statement.parameters, body)
        if statement.kind == "table function":
            check_returned(statement.name, statement.columns, body)
        self._recursive.remove(statement.name)
        if statement.kind == "function" and calls_itself(statement):
            self.catalog.functions.pop(statement.name, None)
            self._recursive.add(statement, body)
            return
        self.catalog.functions[statement.name] = Function(
            statement.parameters, body, statement.kind == "table function"
        )

    def _include(self, pattern: str) -> None:
        for text in self._library.include(pattern):
            self.run(text)

    def add_modules(self, texts: Mapping[str, str]) -> None:
        """Add modules, given as SQL by name; they replace modules of the same names."""
        self._library.add(texts)
