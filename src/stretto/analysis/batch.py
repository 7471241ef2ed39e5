"""One question to many traces, on the processes of this machine or of a cluster.

traces ─> executor: one task per trace ─> Parquet, with the trace's metadata ─> one table
"""

from __future__ import annotations

import multiprocessing
import tempfile
import warnings
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from stretto.analysis.closing import Closing
from stretto.analysis.duckdb_engine import DuckdbResult, load_duckdb
from stretto.analysis.interruption import Turns
from stretto.analysis.sql.errors import QueryError
from stretto.analysis.table_choice import tables_to_write
from stretto.analysis.trace_addresses import Trace, find_traces, opened
from stretto.analysis.trace_processor import TraceProcessor
from stretto.base.errors import StrettoError
from stretto.base.private_files import private_folders

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    from stretto.analysis.query_result import QueryResult
    from stretto.analysis.trace_addresses import Address

    Work = Callable[[TraceProcessor], Any]


class BatchError(StrettoError):
    """A trace of a batch can't be read, or can't be queried."""


class Failure(NamedTuple):
    """A trace that was skipped, and the reason."""

    trace: Trace
    error: BaseException


class Incomplete(NamedTuple):
    """A trace whose tables lack a part of it, and what they lack: a line per reason."""

    trace: Trace
    damage: list[str]


class IncompleteTraceWarning(UserWarning):
    """Traces of a batch are empty, cut off or damaged, or have events that make no slice."""


class _Answer(NamedTuple):
    """What the task of a trace sends back."""

    value: Any
    damage: list[str]


class Batch(Closing):
    """Many traces that answer the same query.

        with Batch("traces/*.pftrace") as batch:
            frame = batch.query("select name, sum(dur) from slice group by name").pandas()

    Each call reads the traces anew, one task per trace: nothing stays in memory, and any executor
    may run the tasks. With the executor of this machine's processes, a program needs the usual
    `if __name__ == "__main__":`.

    Args:
        traces: A path, a folder, a pattern, a URI of fsspec, bytes, a `Trace` with metadata of
            its own, or an iterable of these.
        executor: Any executor of `concurrent.futures`, such as those of Dask and Ray. The default
            are processes, one per core.
        on_error: `raise` stops at the first trace that fails; `skip` notes it in `failures`, also
            if there is no such trace.
        progress: Called after each trace, with the number of finished traces and that of all.

    A trace that is empty, cut off or damaged answers with what can be read. Each call ends with
    one `IncompleteTraceWarning` if there are such traces; `incomplete` has them.

    Attributes:
        traces: The traces, with the metadata that are added to each row. The default is the column
            `trace`: the path or URI, or the number of a trace in memory.

    Raises:
        FileNotFoundError: There is no such trace; with `skip`, none at all.
    """

    def __init__(
        self,
        traces: object,
        *,
        executor: Executor | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        progress: Callable[[int, int], object] = lambda *_: None,
    ) -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error is 'raise' or 'skip', not {on_error!r}")
        self._skips = on_error == "skip"
        self._missing: list[Failure] = []
        found = find_traces(traces, self._note_missing if self._skips else None)
        if self._missing and not found:
            raise FileNotFoundError(str(self._missing[0].error))
        self.traces = [
            Trace(address, {"trace": _name(address, number)} | metadata)
            for number, (address, metadata) in enumerate(found)
        ]
        self._failed: dict[int, Failure] = {}
        self._lacking: dict[int, Incomplete] = {}
        self._executor = executor
        self._own: ProcessPoolExecutor | None = None
        self._progress = progress

    @property
    def failures(self) -> list[Failure]:
        """Those that don't exist, and those that the last call skipped, in order of the traces."""
        return self._missing + [self._failed[number] for number in sorted(self._failed)]

    @property
    def incomplete(self) -> list[Incomplete]:
        """Those of the last call whose rows are not all, in order of the traces."""
        return [self._lacking[number] for number in sorted(self._lacking)]

    def _note_missing(self, text: str, error: FileNotFoundError) -> None:
        self._missing.append(Failure(Trace(text, {"trace": text}), error))

    def query(self, sql: str) -> QueryResult:
        """Run SQL statements on each trace, and return all rows of the last one.

        The rows are in the order of the traces, with columns for their metadata. If a column's
        type differs between traces, it becomes the type that holds all values.

        Raises:
            BatchError: A trace failed, or all traces were skipped.
        """
        with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
            files = []
            for number, data in self._run(partial(_as_parquet, sql=sql)):
                file = Path(folder) / f"{number}.parquet"
                file.write_bytes(data)
                files.append((number, str(file)))
            return _gather([file for _, file in sorted(files)], self._describe_failures)

    def map(self, function: Work) -> list[tuple[Trace, Any]]:
        """Call a function with the `TraceProcessor` of each trace; return traces and results.

        The executor must be able to send the function and its results to other processes. The
        attribute `metadata` of the `TraceProcessor` has the metadata of the trace.

        Raises:
            BatchError: A trace failed.
        """
        return [(self.traces[number], value) for number, value in sorted(self._run(function))]

    def export(
        self,
        folder: str | os.PathLike[str],
        queries: Mapping[str, str] | None = None,
    ) -> None:
        """Write tables as Parquet files, partitioned by trace: `FOLDER/slice/trace=…/0.parquet`.

        Each trace's task writes its files: on a cluster, the folder is one that all machines share.
        Only the user of the tasks can read them (0600, new folders 0700).

        Args:
            folder: A folder; it is created.
            queries: A query for each table, by the table's name. The default are the usual tables
                (`slice`, `thread`, `args`, …) and the others that have rows, whole; but not the
                raw events (`ftrace_event`).

        Raises:
            BatchError: A trace failed.
        """
        chosen = dict(queries) if queries else None
        work = partial(_export, folder=Path(folder).absolute(), queries=chosen)
        for _ in self._run(work):
            pass

    def close(self) -> None:
        """End the processes. An executor of the caller's goes on."""
        if self._own is not None:
            self._own.shutdown(cancel_futures=True)
            self._own = None

    def _pool(self) -> Executor:
        if self._executor is not None:
            return self._executor
        if self._own is None:
            # A fork would copy the threads' locks of this process.
            self._own = ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))
        return self._own

    def _run(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Give the results, with the trace's number, as they come."""
        self._failed = {}
        self._lacking = {}
        pool = self._pool()
        waiting = {pool.submit(_on_trace, each, work): i for i, each in enumerate(self.traces)}
        try:
            for done, future in enumerate(as_completed(list(waiting)), 1):
                number = waiting.pop(future)
                yield from self._result(number, future)
                self._progress(done, len(self.traces))
        finally:
            for future in waiting:
                future.cancel()
        self._warn_of_incomplete()

    def _result(self, number: int, future: Future[_Answer]) -> Iterator[tuple[int, Any]]:
        trace, error = self.traces[number], future.exception()
        if error is None:
            answer = future.result()
            if answer.damage:
                self._lacking[number] = Incomplete(trace, answer.damage)
            yield number, answer.value
        elif self._skips:
            self._failed[number] = Failure(trace, error)
        else:
            raise BatchError(f"{trace.metadata['trace']}: {error}") from error

    def _warn_of_incomplete(self) -> None:
        """Warn at the line that called `query`, `map` or `export`."""
        if not self._lacking:
            return
        trace, damage = self.incomplete[0]
        text = (
            f"{len(self._lacking)} of {len(self.traces)} traces are incomplete (see `incomplete`); "
            f"{trace.metadata['trace']}: unread: {damage[0]}"
        )
        warnings.warn(text, IncompleteTraceWarning, stacklevel=4)

    def _describe_failures(self) -> str:
        if not self.failures:
            return "there are no traces"
        first = self.failures[0]
        name = first.trace.metadata["trace"]
        return f"all {len(self.failures)} traces failed: {name}: {first.error}"


def _name(address: Address, number: int) -> str:
    return address if isinstance(address, str) else str(number)


def _on_trace(trace: Trace, work: Work) -> _Answer:
    """Run the task of one trace. The traces are the parallel part: DuckDB uses one thread."""
    with (
        opened(trace.address) as file,
        TraceProcessor(file, metadata=trace.metadata, threads=1) as processor,
    ):
        return _Answer(work(processor), processor.damage)


def _as_parquet(processor: TraceProcessor, sql: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
        path = Path(folder) / "rows.parquet"
        processor.query(sql).parquet(path, **processor.metadata)
        return path.read_bytes()


def _export(processor: TraceProcessor, folder: Path, queries: dict[str, str] | None) -> None:
    if queries is None:
        queries = {name: f"select * from {name}" for name in tables_to_write(processor)}
    name = quote(str(processor.metadata["trace"]), safe="")
    added = {key: value for key, value in processor.metadata.items() if key != "trace"}
    for table, sql in queries.items():
        partition = private_folders(folder, table, f"trace={name}")
        processor.query(sql).parquet(partition / "0.parquet", **added)


def _gather(files: list[str], describe_failures: Callable[[], str]) -> QueryResult:
    if not files:
        raise BatchError(describe_failures())
    duckdb = load_duckdb()
    connection = duckdb.connect(":memory:")
    connection.execute(
        "create table result as select * from read_parquet($1, union_by_name = true)", [files]
    )
    turns = Turns(connection.interrupt)
    return DuckdbResult(connection.table("result"), duckdb.Error, QueryError, turns)
