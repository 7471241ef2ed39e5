"""The service answers the messages of the trace processor's protocol."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import stretto
from stretto.analysis import TraceProcessor
from stretto.analysis.rpc.cells import rows_of
from stretto.analysis.rpc.service import RpcService
from stretto.base.errors import DecodeError
from stretto.protos.trace_processor import (
    AppendTraceDataResult,
    QueryArgs,
    QueryResult,
    RegisterSqlPackageArgs,
    StatusResult,
    TraceProcessorRpc,
    TraceProcessorRpcStream,
    TraceSummaryArgs,
)
from tests.support.recorded_events import record

Method = TraceProcessorRpc.TraceProcessorMethod
category = stretto.Category("test.rpc")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded, category.slice("work"):
        pass
    return bytes(recorded.trace)


@pytest.fixture(scope="module")
def service(trace: bytes) -> RpcService:
    return RpcService(TraceProcessor, trace, name="t.pftrace", version="Stretto 1")


def answer(service: RpcService, path: str, body: bytes = b"") -> bytes:
    found = service.answer(path, body)
    assert found is not None
    return found


def query(service: RpcService, sql: str) -> QueryResult:
    return QueryResult.decode(answer(service, "/query", QueryArgs(sql_query=sql).encode()))


def rpc(service: RpcService, **fields: object) -> list[TraceProcessorRpc]:
    stream = TraceProcessorRpcStream(msg=[TraceProcessorRpc(**fields)])  # type: ignore[arg-type]
    return list(TraceProcessorRpcStream.decode(answer(service, "/rpc", stream.encode())).msg)


class TestRequests:
    def test_query_gives_columns_and_cells(self, service: RpcService) -> None:
        result = query(service, "select 1; select name, depth, 0.5 as half from slice")
        assert list(result.column_names) == ["name", "depth", "half"]
        assert rows_of(3, result.batch) == [("work", 0, 0.5)]
        assert (result.statement_count, result.statement_with_output_count) == (2, 1)
        assert result.last_statement_sql == "select name, depth, 0.5 as half from slice"

    def test_wrong_query_gives_its_error(self, service: RpcService) -> None:
        result = query(service, "select nme from slice")
        assert "there is no column nme" in result.error
        assert [batch.is_last_batch for batch in result.batch] == [True]

    def test_statement_without_a_result_has_no_columns(self, service: RpcService) -> None:
        assert not query(service, "create perfetto table t as select 1 as a").column_names
        assert rows_of(1, query(service, "select a from t").batch) == [(1,)]

    def test_status_names_trace_and_version(self, service: RpcService) -> None:
        status = StatusResult.decode(answer(service, "/status"))
        assert (status.loaded_trace_name, status.human_readable_version) == (
            "t.pftrace",
            "Stretto 1",
        )

    def test_trace_that_is_sent_in_pieces_replaces_the_loaded_one(self, trace: bytes) -> None:
        service = RpcService(TraceProcessor)
        for piece in (trace[:10], trace[10:]):
            result = AppendTraceDataResult.decode(answer(service, "/parse", piece))
        assert result.total_bytes_parsed == len(trace)
        assert answer(service, "/notify_eof") == b""
        assert rows_of(1, query(service, "select name from slice").batch) == [("work",)]

    def test_bytes_that_are_no_trace_give_an_error(self, service: RpcService) -> None:
        answer(service, "/parse", b"hello, world")
        assert b"no trace" in answer(service, "/notify_eof")
        assert rows_of(1, query(service, "select name from slice").batch) == [("work",)]

    def test_restoring_drops_what_queries_have_created(self, service: RpcService) -> None:
        query(service, "create table mine as select 1 as a")
        answer(service, "/restore_initial_tables")
        assert "there is no table mine" in query(service, "select * from mine").error

    def test_unknown_path_has_no_answer(self, service: RpcService) -> None:
        assert service.answer("/nothing", b"") is None

    def test_malformed_body_is_refused(self, service: RpcService) -> None:
        with pytest.raises(DecodeError):
            service.answer("/query", b"\x0a\xff")


class TestStream:
    def test_query_is_answered_by_numbered_batches(self, service: RpcService) -> None:
        sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) "
        replies = rpc(
            service,
            request=Method.TPM_QUERY_STREAMING,
            query_args=QueryArgs(sql_query=sql + "select i from n"),
        )
        results = [reply.query_result for reply in replies]
        assert [reply.seq - replies[0].seq for reply in replies] == list(range(len(replies)))
        assert len(replies) > 1
        batches = [result.batch[0] for result in results if result is not None]
        assert rows_of(1, batches)[-1] == (60000,)
        assert batches[-1].is_last_batch

    def test_trace_is_sent_and_status_is_given(self, trace: bytes) -> None:
        service = RpcService(TraceProcessor)
        rpc(service, request=Method.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
        (done,) = rpc(service, request=Method.TPM_FINALIZE_TRACE_DATA)
        assert done.finalize_data_result is not None
        assert done.response == Method.TPM_FINALIZE_TRACE_DATA
        assert rows_of(1, query(service, "select name from slice").batch) == [("work",)]
        (status,) = rpc(service, request=Method.TPM_GET_STATUS)
        assert status.status is not None

    def test_sql_package_can_be_included(self, service: RpcService) -> None:
        module = RegisterSqlPackageArgs.Module(
            name="mine.one", sql="create perfetto table one as select 1 as a"
        )
        args = RegisterSqlPackageArgs(package_name="mine", modules=[module])
        rpc(service, request=Method.TPM_REGISTER_SQL_PACKAGE, register_sql_package_args=args)
        result = query(service, "include perfetto module mine.one; select a from one")
        assert rows_of(1, result.batch) == [(1,)]

    def test_summary_is_computed(self, service: RpcService) -> None:
        text = """metric_spec { id: "n" value: "n" query { sql { sql: "select 1 as n" } } }"""
        args = TraceSummaryArgs(
            textproto_specs=[text], output_format=TraceSummaryArgs.Format.TEXTPROTO
        )
        (reply,) = rpc(service, request=Method.TPM_SUMMARIZE_TRACE, trace_summary_args=args)
        assert reply.trace_summary_result is not None
        assert "double_value: 1" in reply.trace_summary_result.textproto_summary

    def test_other_request_is_named_as_invalid(self, service: RpcService) -> None:
        (reply,) = rpc(service, request=Method.TPM_EXPORT)
        assert reply.invalid_request == Method.TPM_EXPORT
