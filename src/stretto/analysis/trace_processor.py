"""SQL on a trace: the importer's tables in DuckDB or SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.analysis.closing import Closing
from stretto.analysis.duckdb_engine import DuckdbEngine, load_duckdb
from stretto.analysis.missing import UNREAD
from stretto.analysis.raw_tables import RawTables, reopened
from stretto.analysis.sql.absent import absent_tables
from stretto.analysis.sql.errors import CLOSED, QueryError
from stretto.analysis.trace_tables import damage, import_trace, statistics

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from stretto import _native
    from stretto.analysis.query_result import QueryResult
    from stretto.analysis.sqlite.engine import SqliteEngine

ENGINES = (DUCKDB, SQLITE) = ("duckdb", "sqlite")


class TraceProcessor(Closing):
    """A trace as tables that are queried by SQL.

        with TraceProcessor("trace.pftrace") as trace:
            for row in trace.query("select name, dur from slice order by dur desc limit 5"):
                print(row.name, row.dur)

    The tables have the names and columns of Perfetto's trace processor; the dialect is PerfettoSQL.

    Several threads may use it: they get their turns one after the other, as queries and as readers
    of results.

    Args:
        trace: A path, the bytes of a trace, or an open file. Perfetto's or Fuchsia's format,
            compressed by gzip or not.
        watch: Called with each piece of the trace that is read.
        metadata: Facts about the trace, by name.
        threads: The number of DuckDB's threads; None for one per core.
        engine: `duckdb`, or `sqlite`: Python's own, which needs no package, and has the trace
            processor's dialect exactly.
        raw_events: What the tables `ftrace_event`, `raw` and `__intrinsic_chrome_raw` have, and
            the arguments of their rows. None: they are made when a query names one; the trace is
            then read again. True: they are made at once, which a trace needs that can be read
            only once. False: they stay empty.

    Attributes:
        metadata: The argument of this name.
        damage: What is missing because the trace is empty, cut off or damaged, or has events that
            no slice can be made of: a line per reason.

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
        engine: str = DUCKDB,
        raw_events: bool | None = None,
    ) -> None:
        self.metadata = dict(metadata or {})
        if engine not in ENGINES:
            raise ValueError(f"the engines are {' and '.join(ENGINES)}, not {engine!r}")
        if engine == DUCKDB:
            load_duckdb()  # Before the trace is read, which may take long.
        again = reopened(trace)
        importer = import_trace(trace, watch, raw_events=raw_events is True)
        self.damage = damage(importer)
        raw = RawTables(importer, again, raw_events)
        self._closed = False
        self._engine: DuckdbEngine | SqliteEngine
        if engine == DUCKDB:
            self._engine = DuckdbEngine(importer, _absent(importer), raw, threads)
        else:
            from stretto.analysis.sqlite.engine import SqliteEngine

            self._engine = SqliteEngine(importer, _absent(importer), raw)

    def query(self, sql: str) -> QueryResult:
        """Run SQL statements, and return the result of the last one.

        Raises:
            QueryError: A statement is wrong, or can't be executed; or the trace is closed.
        """
        if not isinstance(sql, str):
            raise QueryError(f"SQL is a text, not {type(sql).__name__}")
        return self._engine.turns.run(lambda: self._query(sql))

    def _query(self, sql: str) -> QueryResult:
        if self._closed:
            raise QueryError(CLOSED)
        return self._engine.query(sql)

    def add_modules(self, texts: Mapping[str, str]) -> None:
        """Add modules for `include perfetto module`.

        Args:
            texts: The SQL of each module, by its name, such as `mine.slices`.
        """
        with self._engine.turns.lock:
            self._engine.add_modules(texts)

    def close(self) -> None:
        """Free the tables."""
        with self._engine.turns.lock:
            self._closed = True
            self._engine.close()


def _absent(importer: _native.TraceImporter) -> dict[str, str]:
    """Return the statements for the tables of packets that the trace doesn't have, by name."""
    if any(statistics(importer).get(name) for name in UNREAD):
        return {}
    return absent_tables()
