"""A batch asks many traces the same question, on any executor."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import stretto
from stretto.analysis import (
    Batch,
    BatchError,
    IncompleteTraceWarning,
    QueryError,
    Trace,
    TraceProcessor,
)
from stretto.analysis.table_choice import ALWAYS
from tests.support.recorded_events import record

pytestmark = pytest.mark.thorough

category = stretto.Category("test.batch")


class Here(Executor):
    """Runs each task at once, on the thread of the caller."""

    def submit(self, function, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        future: Future[object] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three traces, with one, two and three slices."""
    made = tmp_path_factory.mktemp("traces")
    for number in (1, 2, 3):
        with record() as recorded:
            for size in range(number):
                with category.slice("work", size=2**60 + size):
                    pass
        (made / f"{number}.pftrace").write_bytes(recorded.trace)
    return made


def count_slices(processor: TraceProcessor) -> int:
    ((count,),) = processor.query("select count(*) from slice").fetchall()
    return int(count)


COUNT = "select count(*) as n from slice"


def test_trace_that_does_not_exist_is_skipped_if_failures_are(folder: Path) -> None:
    traces = [folder / "1.pftrace", folder / "9.pftrace"]
    with pytest.raises(FileNotFoundError):
        Batch(traces, executor=Here())
    batch = Batch(traces, executor=Here(), on_error="skip")
    assert batch.query(COUNT).fetchall() == [(1, str(traces[0]))]
    assert [failure.trace.address for failure in batch.failures] == [str(traces[1])]
    with pytest.raises(FileNotFoundError, match="no trace"):
        Batch(traces[1:], on_error="skip")


class TestIncomplete:
    def test_cut_trace_is_a_warning_at_the_line_of_the_call(
        self, folder: Path, tmp_path: Path
    ) -> None:
        cut = tmp_path / "cut.pftrace"
        cut.write_bytes((folder / "3.pftrace").read_bytes()[:-1])
        batch = Batch([folder / "1.pftrace", cut], executor=Here())
        calls = (
            lambda: batch.query(COUNT),
            lambda: batch.map(count_slices),
            lambda: batch.export(tmp_path / "tables", {"n": COUNT}),
        )
        for call in calls:
            with pytest.warns(IncompleteTraceWarning, match=r"^1 of 2 .*cut.*: unread: ") as found:
                call()
            assert [warning.filename for warning in found] == [__file__]
            ((trace, damage),) = batch.incomplete
            assert trace.address == str(cut)
            assert damage[0].startswith("bytes at the end")
            assert batch.failures == []

    def test_whole_traces_are_complete(self, folder: Path) -> None:
        with Batch(folder) as batch:
            batch.query(COUNT)
            assert batch.incomplete == []

    def test_incomplete_traces_come_back_from_processes(self, tmp_path: Path) -> None:
        path = tmp_path / "empty.pftrace"
        path.write_bytes(b"")
        with Batch(path) as batch, pytest.warns(IncompleteTraceWarning, match="it is empty"):
            batch.query(COUNT)
        assert [trace.address for trace, _ in batch.incomplete] == [str(path)]


class TestQuery:
    def test_rows_have_the_trace_beside_them_in_the_order_of_the_traces(self, folder: Path) -> None:
        rows = Batch(folder, executor=Here()).query(COUNT).fetchall()
        assert rows == [(n, str(folder / f"{n}.pftrace")) for n in (1, 2, 3)]

    def test_processes_and_threads_give_the_same_rows(self, folder: Path) -> None:
        expected = Batch(folder, executor=Here()).query(COUNT).fetchall()
        with Batch(folder) as batch:
            assert isinstance(batch._pool(), ProcessPoolExecutor)
            assert batch.query(COUNT).fetchall() == expected
        with ThreadPoolExecutor(2) as threads:
            assert Batch(folder, executor=threads).query(COUNT).fetchall() == expected
            assert threads.submit(int, "7").result() == 7

    def test_metadata_of_a_trace_are_columns(self, folder: Path) -> None:
        first, second = (
            Trace(str(folder / f"{n}.pftrace"), {"branch": name, "run": n, "fast": True})
            for n, name in ((1, "it's"), (2, None))
        )
        result = Batch([first, second], executor=Here()).query(COUNT)
        assert result.columns == ("n", "trace", "branch", "run", "fast")
        assert [row[2:] for row in result.fetchall()] == [("it's", 1, True), (None, 2, True)]

    def test_sums_are_exact(self, folder: Path) -> None:
        sql = "select sum(extract_arg(arg_set_id, 'debug.size')) as s from slice"
        rows = Batch(folder / "3.pftrace", executor=Here()).query(sql).fetchall()
        assert rows[0][0] == 3 * 2**60 + 3

    def test_types_that_differ_between_traces_become_one(self, folder: Path) -> None:
        sql = "select iif(count(*) = 1, null, count(*)) as n from slice"
        rows = Batch(folder, executor=Here()).query(sql).fetchall()
        assert [row[0] for row in rows] == [None, 2, 3]

    def test_argument_that_a_trace_lacks_keeps_its_type(self, folder: Path) -> None:
        with record() as recorded, category.slice("work", other=1):
            pass
        size = "extract_arg(arg_set_id, 'debug.size')"
        sql = f"select {size} as size, sum({size}) as total from slice"
        batch = Batch([folder / "1.pftrace", recorded.trace], executor=Here())
        assert [row[:2] for row in batch.query(sql).fetchall()] == [(2**60, 2**60), (None, None)]

    def test_column_with_the_name_of_metadata_is_refused(self, folder: Path) -> None:
        with pytest.raises(BatchError, match="the column trace is added to each row"):
            Batch(folder, executor=Here()).query("select 1 as trace")

    def test_columns_of_equal_names_are_kept(self, folder: Path) -> None:
        result = Batch(folder / "1.pftrace", executor=Here()).query("select 1 as a, 2 as a")
        assert result.fetchall()[0][:2] == (1, 2)


class TestTraces:
    def test_pattern_folder_path_bytes_and_file_name_the_traces(self, folder: Path) -> None:
        first = folder / "1.pftrace"
        with open(first, "rb") as file:
            named = [str(folder / "[12].*"), folder, first, first.read_bytes(), file]
            batch = Batch(named, executor=Here())
        names = [trace.metadata["trace"] for trace in batch.traces]
        assert [Path(name).name[0] for name in names] == ["1", "2", "1", "2", "3", "1", "6", "7"]
        assert [n for n, _ in batch.query(COUNT).fetchall()] == [1, 2, 1, 2, 3, 1, 1, 1]

    def test_uri_is_opened_by_fsspec(self, folder: Path) -> None:
        pytest.importorskip("fsspec")
        batch = Batch(f"file://{folder}/*.pftrace", executor=Here())
        assert [n for n, _ in batch.query(COUNT).fetchall()] == [1, 2, 3]
        assert str(batch.traces[0].metadata["trace"]).startswith("file://")

    def test_error_without_fsspec_names_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
        with pytest.raises(ModuleNotFoundError, match="URIs of traces need fsspec"):
            Batch("s3://bucket/*.pftrace")

    def test_pattern_without_a_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="there is no trace"):
            Batch(tmp_path / "*.pftrace")


class TestFailures:
    @pytest.fixture
    def mixed(self, folder: Path, tmp_path: Path) -> list[Path]:
        broken = tmp_path / "broken.pftrace"
        broken.write_text("hello, world")
        return [folder / "1.pftrace", broken, folder / "2.pftrace"]

    def test_failure_raises_an_error_that_names_the_trace(self, mixed: list[Path]) -> None:
        with pytest.raises(BatchError, match=r"broken\.pftrace: it is no trace"):
            Batch(mixed, executor=Here()).query(COUNT)

    def test_traces_that_fail_are_skipped_and_listed_if_so_asked(self, mixed: list[Path]) -> None:
        batch = Batch(mixed, executor=Here(), on_error="skip")
        assert [n for n, _ in batch.query(COUNT).fetchall()] == [1, 2]
        (failure,) = batch.failures
        assert failure.trace.address == str(mixed[1])
        assert "no trace" in str(failure.error)

    def test_query_that_fails_on_all_traces_raises_even_if_failures_are_skipped(
        self, mixed: list[Path]
    ) -> None:
        batch = Batch(mixed[::2], executor=Here(), on_error="skip")
        with pytest.raises(BatchError, match=r"all 2 traces failed: .*1\.pftrace: .*nme"):
            batch.query("select nme from slice")

    def test_failure_in_a_process_has_its_cause(self, mixed: list[Path]) -> None:
        with Batch(mixed[0]) as batch, pytest.raises(BatchError) as raised:
            batch.query("select nme from slice")
        assert isinstance(raised.value.__cause__, QueryError)

    def test_wrong_choice_is_refused(self, folder: Path) -> None:
        with pytest.raises(ValueError, match="not 'ignore'"):
            Batch(folder, on_error="ignore")  # type: ignore[arg-type]


def test_function_gets_the_processor_of_each_trace(folder: Path) -> None:
    pairs = Batch(folder, executor=Here()).map(count_slices)
    assert [(Path(str(trace.address)).name, n) for trace, n in pairs] == [
        ("1.pftrace", 1), ("2.pftrace", 2), ("3.pftrace", 3),
    ]  # fmt: skip


def test_progress_is_called_after_each_trace(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    batch = Batch(folder, executor=Here(), progress=lambda done, n: seen.append((done, n)))
    batch.map(count_slices)
    assert seen == [(1, 3), (2, 3), (3, 3)]


class TestExport:
    def test_tables_are_written_as_parquet_partitioned_by_trace(
        self, folder: Path, tmp_path: Path
    ) -> None:
        import duckdb

        Batch(folder, executor=Here()).export(tmp_path)
        with_rows = {"metadata", "stats", "clock_snapshot"}
        names = {path.name for path in tmp_path.iterdir()}
        assert names > with_rows.union(ALWAYS)
        assert names.isdisjoint({"flow", "sched", "slices", "ftrace_event"})
        rows = duckdb.sql(
            "select trace, count(*) from read_parquet("
            f"'{tmp_path}/slice/*/*.parquet', hive_partitioning = true) group by 1 order by 1"
        ).fetchall()
        assert rows == [(str(folder / f"{n}.pftrace"), n) for n in (1, 2, 3)]

    def test_only_the_owner_can_read_the_tables(self, folder: Path, tmp_path: Path) -> None:
        made = tmp_path / "new"
        Batch(folder, executor=Here()).export(made, {"sizes": COUNT})
        inside = {oct(path.stat().st_mode & 0o777) for path in made.rglob("trace=*")}
        assert inside == {"0o700"}
        assert oct((made / "sizes").stat().st_mode & 0o777) == "0o700"
        files = {oct(path.stat().st_mode & 0o777) for path in made.rglob("*.parquet")}
        assert files == {"0o600"}

    def test_query_is_written_with_the_metadata(self, folder: Path, tmp_path: Path) -> None:
        import duckdb

        trace = Trace(str(folder / "2.pftrace"), {"branch": "main"})
        Batch(trace, executor=Here()).export(tmp_path, {"sizes": COUNT})
        rows = duckdb.sql(f"select n, branch from '{tmp_path}/sizes/*/*.parquet'").fetchall()
        assert rows == [(2, "main")]


@pytest.mark.once
def test_dask_cluster_of_two_workers_gives_the_same_rows(folder: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = Batch(folder, executor=client.get_executor()).query(COUNT).fetchall()
    assert [n for n, _ in rows] == [1, 2, 3]


def test_batch_without_traces_says_so() -> None:
    with Batch([]) as batch, pytest.raises(BatchError, match="there are no traces"):
        batch.query("select 1")
