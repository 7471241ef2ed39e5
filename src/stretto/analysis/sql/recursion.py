"""Functions of `create perfetto function` that call themselves.

Their calls can't be replaced by the body. So the function becomes one of DuckDB's that is written
in Python: it evaluates the body, with values for the arguments, on a connection of its own. Equal
calls within a statement are evaluated once.
"""

from __future__ import annotations

import weakref
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from stretto.analysis.sql.errors import QueryError
from stretto.analysis.sql.macros import substitute
from stretto.analysis.sql.rewriter import rewrite
from stretto.analysis.sql.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.analysis.sql.catalog import Catalog
    from stretto.analysis.sql.statements import Statement

_MAX_DEPTH = 100
_TYPES = {
    "string": "VARCHAR",
    "bytes": "BLOB",
    "double": "DOUBLE",
    "float": "DOUBLE",
}
"""DuckDB's types of PerfettoSQL's; the others are integers."""


def calls_itself(statement: Statement) -> bool:
    """Whether the body of a function calls the function."""
    tokens = tokenize(statement.text)
    return any(
        token.kind == "word" and token.text.lower() == statement.name and after.text == "("
        for token, after in pairwise(tokens)
    )


class RecursiveFunctions:
    """The functions of a session that call themselves.

    Args:
        connection: The connection to DuckDB.
        catalog: The session's names.
    """

    def __init__(self, connection: Any, catalog: Catalog) -> None:
        self._connection = connection
        self._catalog = catalog
        self._known: dict[tuple[str, tuple[Any, ...]], Any] = {}
        self._names = catalog.recursive
        self._depth = 0

    def forget_values(self) -> None:
        """Forget the values of calls: tables may have changed."""
        self._known.clear()

    def remove(self, name: str) -> None:
        """Remove a function, if there is one of this name."""
        if name in self._names:
            self._connection.remove_function(name)
            self._names.remove(name)

    def add(self, statement: Statement, body: str) -> None:
        """Add the function of a statement; `body` is its text without macros.

        Raises:
            QueryError: numpy isn't installed: DuckDB needs it for functions written in Python.
        """
        if find_spec("numpy") is None:
            raise QueryError(
                f"the function {statement.name} calls itself: with DuckDB, that needs numpy "
                "(pip install 'stretto[recursion]'); the engine sqlite needs nothing"
            )
        self.remove(statement.name)
        self._connection.create_function(
            statement.name,
            self._evaluator(statement, body),
            [_TYPES.get(kind, "BIGINT") for kind in statement.types],
            _TYPES.get(statement.returns, "BIGINT"),
            null_handling="special",
            # Otherwise, calls with constants would be evaluated in branches that aren't taken.
            side_effects=True,
        )
        self._names.add(statement.name)

    def _evaluator(self, statement: Statement, body: str) -> Callable[..., Any]:
        # DuckDB's connection has the function: a reference to the connection would be a cycle
        # that Python can't see.
        owner = weakref.ref(self)

        def evaluate(*arguments: Any) -> Any:
            functions = owner()
            if functions is None:
                return None
            call = statement.name, arguments
            if call not in functions._known:  # noqa: SLF001
                values = dict(zip(statement.parameters, map(_literal, arguments), strict=True))
                value = functions._value(statement.name, substitute(body, values))  # noqa: SLF001
                functions._known[call] = value  # noqa: SLF001
            return functions._known[call]  # noqa: SLF001

        return evaluate

    def _value(self, name: str, sql: str) -> Any:
        """Return the value of a body; NULL if it has no row.

        Raises:
            QueryError: The calls are nested too deeply.
        """
        if self._depth == _MAX_DEPTH:
            raise QueryError(f"the function {name} calls itself more than {_MAX_DEPTH} times")
        cursor = self._connection.cursor()
        self._depth += 1
        try:
            row = cursor.execute(rewrite(sql, self._catalog.on(cursor))).fetchone()
        finally:
            self._depth -= 1
            cursor.close()
        return None if row is None else row[0]


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"({value!r})"
