"""TraceProcessor answers SQL on a trace; the importer reads any form of a trace."""

from __future__ import annotations

import gzip
import io
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import stretto
from stretto import _native
from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.duckdb_engine import DuckdbResult
from stretto.analysis.trace_processor import DUCKDB, ENGINES
from stretto.analysis.trace_tables import import_trace, statistics
from stretto.base.errors import DecodeError, LocalProtocolError
from tests.support.recorded_events import record

category = stretto.Category("test.tables")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded:
        with category.slice("outer", size=3):
            category.instant("inside")
        category.begin("open", track=stretto.Track("lane"))
    return bytes(recorded.trace)


def names(importer: _native.TraceImporter) -> list[str]:
    columns, rows = importer.rows("slice")
    return [row[columns.index("name")] for row in rows]


class TestImport:
    def test_paths_files_and_bytes_give_the_same_tables(self, trace: bytes, tmp_path: Path) -> None:
        path = tmp_path / "t.pftrace"
        path.write_bytes(trace)
        with open(path, "rb") as file:
            imports = [import_trace(x) for x in (trace, path, str(path), file, io.BytesIO(trace))]
        assert all(names(each) == ["outer", "inside", "open"] for each in imports)

    def test_gzip_is_decompressed(self, trace: bytes) -> None:
        assert names(import_trace(gzip.compress(trace))) == ["outer", "inside", "open"]

    def test_file_that_is_no_trace_is_refused(self) -> None:
        with pytest.raises(DecodeError):
            import_trace(b"hello, world\n")

    def test_watch_is_called_with_each_piece_of_the_trace(self, trace: bytes) -> None:
        seen = bytearray()
        import_trace(trace, seen.extend)
        assert seen == trace

    def test_cut_trace_is_read_up_to_the_cut_and_the_rest_is_counted(self, trace: bytes) -> None:
        importer = import_trace(trace[:-1])
        assert statistics(importer)["stretto_unread_bytes"] > 0
        assert "outer" in names(importer)

    def test_rows_before_finish_and_feed_after_finish_are_refused(self) -> None:
        importer = _native.TraceImporter(bytes)
        with pytest.raises(LocalProtocolError, match="finish"):
            importer.rows("slice")
        importer.finish()
        with pytest.raises(LocalProtocolError, match="another importer"):
            importer.feed(b"")
        with pytest.raises(KeyError, match="nothing"):
            importer.rows("nothing")

    def test_totals_group_slices(self, trace: bytes) -> None:
        importer = import_trace(trace)
        first, end, rows = importer.slice_totals("function")
        assert first < end
        assert {(row[0], row[1], row[3]) for row in rows} == {
            ("test.tables", name, 1) for name in ("outer", "inside", "open")
        }
        assert [row[3] for row in importer.slice_totals("category")[2]] == [3]
        with pytest.raises(ValueError, match="grouping"):
            importer.slice_totals("colour")  # type: ignore[arg-type]


class TestQuery:
    @pytest.fixture
    def processor(self, trace: bytes) -> TraceProcessor:
        pytest.importorskip("duckdb")
        pytest.importorskip("sqlglot")
        return TraceProcessor(trace)

    def test_rows_have_attributes(self, processor: TraceProcessor) -> None:
        rows = list(processor.query("select name, depth, count(*) over () from slice order by id"))
        assert [(row.name, row.depth) for row in rows] == [("outer", 0), ("inside", 1), ("open", 0)]

    def test_second_column_of_the_same_name_is_read_by_its_position(
        self, processor: TraceProcessor
    ) -> None:
        (row,) = processor.query(
            "select a.name, b.name from slice a, slice b where a.id + b.id = 0"
        )
        assert (row.name, row[1]) == ("outer", "outer")

    def test_names_of_columns_are_those_of_the_package_perfetto(
        self, processor: TraceProcessor
    ) -> None:
        assert processor.query("select name, dur from slice").column_names == ["name", "dur"]

    def test_arguments_are_found_by_key(self, processor: TraceProcessor) -> None:
        query = "select extract_arg(arg_set_id, 'debug.size') from slice where name = 'outer'"
        assert processor.query(query).fetchall() == [(3,)]

    def test_statements_without_a_result_have_no_rows(self, processor: TraceProcessor) -> None:
        created = processor.query("create table mine as select * from slice")
        assert created.fetchall() in ([], [(3,)])
        assert processor.query("select count(*) from mine").fetchall() == [(3,)]

    @pytest.mark.parametrize(
        "sql", ["select nme from slice", "selct", "select name + 1 from slice"]
    )
    def test_wrong_sql_raises_query_error(self, processor: TraceProcessor, sql: str) -> None:
        with pytest.raises(QueryError), processor:
            processor.query(sql).fetchall()

    @pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
    @pytest.mark.parametrize(
        ("method", "package"), [("pandas", "pandas"), ("arrow", "pyarrow"), ("polars", "polars")]
    )
    def test_error_without_the_package_of_a_form_names_it(
        self,
        trace: bytes,
        monkeypatch: pytest.MonkeyPatch,
        engine: str,
        method: str,
        package: str,
    ) -> None:
        if engine == "duckdb":
            pytest.importorskip("duckdb")
        monkeypatch.setitem(sys.modules, package, None)
        with TraceProcessor(trace, engine=engine) as processor:
            result = processor.query("select name from slice")
            with pytest.raises(ModuleNotFoundError, match=f"`pip install {package}`"):
                getattr(result, method)()

    @pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
    def test_parquet_is_written_for_its_owner_or_with_the_mode_of_the_old_file(
        self, trace: bytes, tmp_path: Path, engine: str
    ) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        pytest.importorskip("duckdb")
        new, old = tmp_path / "new", tmp_path / "old"
        old.write_bytes(bytes(100_000))
        old.chmod(0o640)
        with TraceProcessor(trace, engine=engine) as processor:
            for path in (new, old):
                processor.query("select name from slice").parquet(path)
        rows = [{"name": name} for name in ("outer", "inside", "open")]
        assert [parquet.read_table(path).to_pylist() for path in (new, old)] == [rows, rows]
        assert [path.stat().st_mode & 0o777 for path in (new, old)] == [0o600, 0o640]

    @pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
    def test_file_that_cannot_be_written_is_no_error_of_the_query(
        self, trace: bytes, tmp_path: Path, engine: str
    ) -> None:
        pytest.importorskip("pyarrow.parquet")
        pytest.importorskip("duckdb")
        with TraceProcessor(trace, engine=engine) as processor:
            result = processor.query("select name from slice")
            with pytest.raises(FileNotFoundError, match="missing"):
                result.parquet(tmp_path / "missing" / "rows")
            with pytest.raises(OSError, match="No space left"):
                result.parquet("/dev/full")
        assert Path("/dev/full").is_char_device()  # pyarrow would delete it

    @pytest.mark.parametrize("package", ["duckdb", "sqlglot"])
    def test_error_without_a_package_names_it_and_the_extra_to_install(
        self, trace: bytes, monkeypatch: pytest.MonkeyPatch, package: str
    ) -> None:
        if package == "sqlglot":  # Without duckdb the error names duckdb.
            pytest.importorskip("duckdb")
        for module in ("stretto.analysis.sql.session", "stretto.analysis.sql.rewriter"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ModuleNotFoundError, match=rf"needs {package}: .*stretto\[analysis\]"):
            TraceProcessor(trace)


ENDLESS = """
with recursive n(i) as (select press_ctrl_c() union all select i + 1 from n) select count(*) from n
"""


@pytest.mark.skipif(os.name == "nt", reason="there os.kill ends the process")
def test_ctrl_c_ends_an_endless_query_of_sqlite(trace: bytes) -> None:
    def press() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 0

    with TraceProcessor(trace, engine="sqlite") as processor:
        connection: Any = processor._engine._connection
        connection.create_function("press_ctrl_c", 0, press)
        with pytest.raises(KeyboardInterrupt):
            processor.query(ENDLESS)
        assert processor.query("select 1").fetchall() == [(1,)]


@pytest.mark.skipif(os.name == "nt", reason="there os.kill ends the process")
def test_ctrl_c_ends_the_rows_of_duckdb(trace: bytes) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("numpy")  # DuckDB needs it for functions in Python

    def press(number: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return number

    with TraceProcessor(trace) as processor:
        connection: Any = processor._engine._connection
        connection.create_function("press_ctrl_c", press, [int], int, side_effects=True)
        relation = connection.sql(
            "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c, "
            "(select press_ctrl_c(1) as pressed) p where a.range * b.range + c.range < pressed"
        )
        result = DuckdbResult(relation, Exception, QueryError, processor._engine.turns)
        with pytest.raises(KeyboardInterrupt):
            result.fetchall()
        assert processor.query("select 1").fetchall() == [(1,)]


def test_another_thread_runs_the_query_itself(trace: bytes) -> None:
    with TraceProcessor(trace, engine="sqlite") as processor, ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: processor.query("select 1").fetchall()).result()
    assert found == [(1,)]


@pytest.mark.skipif(os.name == "nt", reason="there os.kill ends the process")
def test_ctrl_c_ends_the_wait_for_another_threads_query_not_that_query(trace: bytes) -> None:
    begun, waits, go = Event(), Event(), Event()

    def hold() -> int:
        begun.set()
        waits.wait()
        os.kill(os.getpid(), signal.SIGINT)
        go.wait()
        return 7

    with TraceProcessor(trace, engine="sqlite") as processor, ThreadPoolExecutor(1) as pool:
        connection: Any = processor._engine._connection
        connection.create_function("hold", 0, hold)
        held = pool.submit(lambda: processor.query("select hold()").fetchall())

        def wait_for_turn() -> None:
            begun.wait()
            waits.set()
            processor.query("select 1")

        with pytest.raises(KeyboardInterrupt):
            wait_for_turn()
        go.set()
        assert held.result() == [(7,)]
        assert processor.query("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_get_the_rows_of_their_queries(trace: bytes, engine: str) -> None:
    if engine == DUCKDB:
        pytest.importorskip("duckdb")

    def ask(number: int) -> bool:
        rows = processor.query(f"select {number} as n, id from slice where id < {number % 4}")
        return rows.fetchall() == [(number, i) for i in range(number % 4)]

    with TraceProcessor(trace, engine=engine) as processor, ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(80)))


@pytest.mark.parametrize("engine", ENGINES)
class TestWrongUse:
    @pytest.fixture
    def processor(self, trace: bytes, engine: str) -> TraceProcessor:
        if engine == "duckdb":
            pytest.importorskip("duckdb")
            pytest.importorskip("sqlglot")
        return TraceProcessor(trace, engine=engine)

    def test_sql_that_is_no_text_is_refused(self, processor: TraceProcessor) -> None:
        wrong: Any = 5
        with pytest.raises(QueryError, match="SQL is a text, not int"):
            processor.query(wrong)

    def test_closed_trace_is_told(self, processor: TraceProcessor) -> None:
        processor.close()
        processor.close()
        with pytest.raises(QueryError, match="the trace is closed: make a new TraceProcessor"):
            processor.query("select 1")

    def test_expression_that_is_too_deep_is_an_error(self, processor: TraceProcessor) -> None:
        with pytest.raises(QueryError, match=r"line 1, column 1: .*(nested too deep|too large)"):
            processor.query(f"select {'1+' * 3000}1")


def test_rows_of_a_closed_trace_are_an_error(trace: bytes) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    with TraceProcessor(trace) as processor:
        result = processor.query("select name from slice")
    with pytest.raises(QueryError, match="the trace is closed"):
        result.fetchall()


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_of_equal_names_get_numbers_in_all_forms(
    trace: bytes, engine: str, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = ["a", "a_1", "a_1_1", "a_2"]
    with TraceProcessor(trace, engine=engine) as processor:

        def result() -> Any:
            return processor.query("select 1 as a, 2 as a, 3 as a_1, 4 as a")

        (row,) = result()
        assert row._asdict() == dict(zip(expected, (1, 2, 3, 4), strict=True))
        assert list(result().pandas().columns) == expected
        assert list(result().polars().columns) == expected
        result().parquet(tmp_path / "rows.parquet")
    assert parquet.ParquetFile(tmp_path / "rows.parquet").schema.names == expected
