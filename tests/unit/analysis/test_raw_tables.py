"""The tables of raw events are made when a query names one, from the trace, which is read again."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.perfetto.trace_processor import TraceProcessor as PerfettoProcessor
from stretto.analysis.perfetto.trace_processor import TraceProcessorConfig
from stretto.analysis.raw_tables import names_raw_table
from stretto.protozero.wire import bytes_field, varint_field

CPU_IDLE = 13


def idle(ts: int, state: int) -> bytes:
    fields = varint_field(1, state) + varint_field(2, 1)
    return varint_field(1, ts) + varint_field(2, 7) + bytes_field(CPU_IDLE, fields)


def kernel_trace(*events: bytes) -> bytes:
    bundle = varint_field(1, 1) + b"".join(bytes_field(2, event) for event in events)
    return bytes_field(1, bytes_field(1, bundle))


TRACE = kernel_trace(idle(10, 3), idle(20, 4))
QUERY = "select ts, name, cpu, extract_arg(arg_set_id, 'state') as state from ftrace_event"
ROWS = [(10, "cpu_idle", 1, 3), (20, "cpu_idle", 1, 4)]


class Once(io.RawIOBase):
    """A stream, which can't be read again."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._file.readinto(buffer)


def stream() -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(Once(TRACE)))


@pytest.fixture(params=["duckdb", "sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
        pytest.importorskip("sqlglot")
    return str(request.param)


def test_query_of_raw_events_reads_the_trace_again(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(TRACE)
    with open(path, "rb") as file:
        for trace in (path, str(path), TRACE, io.BytesIO(TRACE), file):
            with TraceProcessor(trace, engine=engine) as processor:
                assert processor.query(QUERY).fetchall() == ROWS
                assert processor.query(QUERY.replace("ftrace_event", "raw")).fetchall() == ROWS


def test_file_is_read_again_from_where_the_trace_began(engine: str) -> None:
    file = io.BytesIO(b"before" + TRACE)
    file.seek(6)
    with TraceProcessor(file, engine=engine) as processor:
        assert processor.query(QUERY).fetchall() == ROWS


def test_other_queries_need_the_trace_only_once(engine: str) -> None:
    with TraceProcessor(stream(), engine=engine) as processor:
        assert processor.query("select count(*) from counter").fetchall() == [(2,)]
        with pytest.raises(QueryError, match="only once: give its path"):
            processor.query(QUERY)


def test_raw_events_that_are_asked_for_at_once_need_no_second_reading(engine: str) -> None:
    with TraceProcessor(stream(), engine=engine, raw_events=True) as processor:
        assert processor.query(QUERY).fetchall() == ROWS


def test_unwanted_raw_events_have_no_rows(engine: str) -> None:
    with TraceProcessor(TRACE, engine=engine, raw_events=False) as processor:
        assert processor.query(QUERY).fetchall() == []


def test_trace_without_raw_events_is_not_read_again(engine: str) -> None:
    with TraceProcessor(cast("BinaryIO", io.BufferedReader(Once(b""))), engine=engine) as processor:
        assert processor.query("select * from raw").fetchall() == []
        assert processor.query("select * from __intrinsic_chrome_raw").fetchall() == []


def test_trace_that_has_changed_is_refused(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    path.write_bytes(TRACE)
    with TraceProcessor(path, engine=engine) as processor:
        path.write_bytes(kernel_trace(idle(10, 3)))
        with pytest.raises(QueryError, match="has changed"):
            processor.query(QUERY)
        path.unlink()
        with pytest.raises(QueryError, match="failed"):
            processor.query(QUERY)


def test_views_and_functions_may_name_raw_events(engine: str) -> None:
    with TraceProcessor(TRACE, engine=engine) as processor:
        processor.query("create perfetto view idle as select ts from ftrace_event where cpu = 1")
        processor.query(
            "create perfetto function newest() returns long as select max(ts) from idle"
        )
        assert processor.query("select *, newest() from idle order by ts").fetchall() == [
            (10, 20),
            (20, 20),
        ]


def test_types_of_arguments_are_those_of_all_events(engine: str) -> None:
    with TraceProcessor(TRACE, engine=engine) as processor:
        sql = "select extract_arg(arg_set_id, 'state') from counter"
        assert processor.query(sql).fetchall() == [(None,), (None,)]
        assert processor.query(QUERY).fetchall() == ROWS


def test_bounds_of_the_trace_contain_events_that_make_no_other_row(engine: str) -> None:
    signal = varint_field(1, 90) + varint_field(2, 7) + bytes_field(17, b"")
    with TraceProcessor(kernel_trace(idle(10, 3), signal), engine=engine) as processor:
        assert processor.query("select * from trace_bounds").fetchall() == [(10, 90)]


@pytest.mark.parametrize(("wanted", "count"), [(False, 0), (True, 2)])
def test_perfetto_surface_has_raw_events_only_on_request(wanted: bool, count: int) -> None:
    pytest.importorskip("duckdb")
    config = TraceProcessorConfig(ingest_ftrace_in_raw=wanted)
    with PerfettoProcessor(io.BytesIO(TRACE), config=config) as processor:
        assert len(processor.query("select * from ftrace_event")) == count


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT * FROM Ftrace_Event", True),
        ("select 1 from slice, raw", True),
        ("select 1 from slice join raw using (ts)", True),
        ("select * from __intrinsic_chrome_raw", True),
        ("select raw from slice", False),
        ("select * from my_ftrace_event", False),
        ("select * from raw_slice", False),
    ],
)
def test_names_of_the_tables_are_found_in_statements(sql: str, named: bool) -> None:
    assert names_raw_table(sql) is named
