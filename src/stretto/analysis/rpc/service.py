"""Answers the requests of the trace processor's protocol. Bytes in, bytes out.

    POST /query             QueryArgs → QueryResult
    POST /parse             bytes of a trace → AppendTraceDataResult
    GET  /notify_eof        the trace is complete
    POST /trace_summary     TraceSummaryArgs → TraceSummaryResult
    GET  /status            StatusResult
    POST /rpc               TraceProcessorRpcStream → TraceProcessorRpcStream
    GET  /restore_initial_tables

The trace is the one that the server was started with, or the one that a client sends.
"""

from __future__ import annotations

import tempfile
import time
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from stretto.analysis.rpc.cells import batches
from stretto.analysis.sql.errors import QueryError
from stretto.analysis.sql.statements import statements
from stretto.analysis.summary.specs import read_specs
from stretto.analysis.summary.trace_summary import summarize_by_specs
from stretto.base.errors import DecodeError, StrettoError
from stretto.protos.trace_processor import (
    AppendTraceDataResult,
    ComputeMetricResult,
    DisableAndReadMetatraceResult,
    FinalizeDataResult,
    QueryArgs,
    QueryResult,
    RegisterSqlPackageArgs,
    RegisterSqlPackageResult,
    StatusResult,
    TraceProcessorRpc,
    TraceProcessorRpcStream,
    TraceSummaryArgs,
    TraceSummaryResult,
)
from stretto.protozero.text_format import format_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from stretto.analysis.trace_processor import TraceProcessor

    Processor = TraceProcessor

API_VERSION = 14
_Method = TraceProcessorRpc.TraceProcessorMethod
_NO_METRICS = "metrics of version 1 are not available: use a trace summary"
_NO_METATRACE = "there is no metatrace"


class RpcService:
    """One trace, and the requests of all clients, one at a time.

    Args:
        load: Makes a `TraceProcessor` of a trace.
        trace: The trace that is loaded at first; the default is an empty one.
        name: The name of the trace, for `/status`.
        version: The server's version, for `/status`.
    """

    def __init__(
        self,
        load: Callable[[Any], TraceProcessor],
        trace: object = b"",
        *,
        name: str = "",
        version: str = "",
    ) -> None:
        self._load = load
        self._trace = trace
        self._name = name
        self._version = version
        self._lock = Lock()
        self._sent = 0
        self._received: BinaryIO | None = None
        self._processor = load(trace)
        self._answers: dict[str, Callable[[bytes], bytes]] = {
            "/query": lambda body: self._query_whole(body).encode(),
            "/parse": lambda body: self._append(body).encode(),
            "/notify_eof": lambda _: self._complete().error.encode(),
            "/trace_summary": lambda body: self._summarize(body).encode(),
            "/status": lambda _: self._status().encode(),
            "/rpc": lambda body: b"".join(self._stream(body)),
            "/restore_initial_tables": lambda _: self._restore(),
            "/compute_metric": lambda _: ComputeMetricResult(error=_NO_METRICS).encode(),
            "/enable_metatrace": lambda _: b"",
            "/disable_and_read_metatrace": lambda _: DisableAndReadMetatraceResult(
                error=_NO_METATRACE
            ).encode(),
        }

    def answer(self, path: str, body: bytes) -> bytes | None:
        """Return the answer to a request; None if there is no such path.

        Raises:
            DecodeError: The body isn't the message of this path.
        """
        if path not in self._answers:
            return None
        with self._lock:
            return self._answers[path](body)

    def close(self) -> None:
        """Free the trace."""
        with self._lock:
            self._processor.close()

    def _status(self) -> StatusResult:
        return StatusResult(
            loaded_trace_name=self._name,
            human_readable_version=self._version,
            api_version=API_VERSION,
            version_code=self._version,
        )

    def _query_whole(self, body: bytes) -> QueryResult:
        first, *others = self._query(QueryArgs.decode(body).sql_query)
        first.batch = [*first.batch, *(batch for other in others for batch in other.batch)]
        return first

    def _query(self, sql: str) -> Iterator[QueryResult]:
        """Give the result of a query, one batch in each message."""
        began = time.perf_counter()
        try:
            found = self._processor.query(sql)
            columns, rows = found.columns, found.fetchall()
            texts = [each.text for each in statements(sql)]
        except QueryError as error:
            last = QueryResult.CellsBatch(is_last_batch=True)
            yield QueryResult(error=str(error), batch=[last])
            return
        first, *others = batches(rows if columns else [])
        yield QueryResult(
            column_names=columns,
            batch=[first],
            statement_count=len(texts),
            statement_with_output_count=int(bool(columns)),
            last_statement_sql=texts[-1],
            elapsed_time_ms=(time.perf_counter() - began) * 1e3,
        )
        for batch in others:
            yield QueryResult(batch=[batch])

    def _append(self, data: bytes) -> AppendTraceDataResult:
        if self._received is None:
            self._received = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115
        self._received.write(data)
        return AppendTraceDataResult(total_bytes_parsed=self._received.tell())

    def _complete(self) -> FinalizeDataResult:
        """Load the trace that was received."""
        if self._received is None:
            return FinalizeDataResult()
        with self._received as file:
            self._received = None
            file.seek(0)
            data = file.read()
        try:
            loaded = self._load(data)
        except DecodeError as error:
            return FinalizeDataResult(error=str(error))
        self._processor.close()
        self._trace, self._processor, self._name = data, loaded, ""
        return FinalizeDataResult()

    def _restore(self) -> bytes:
        """Load the trace anew: what queries have created is gone."""
        self._processor.close()
        self._processor = self._load(self._trace)
        return b""

    def _summarize(self, body: bytes) -> TraceSummaryResult:
        args = TraceSummaryArgs.decode(body)
        computed = args.computation_spec
        try:
            summary = summarize_by_specs(
                self._processor,
                read_specs([*args.proto_specs, *args.textproto_specs]),
                None if computed is None or computed.run_all_metrics else computed.metric_ids,
                computed.metadata_query_id if computed is not None else None,
            )
        except StrettoError as error:
            return TraceSummaryResult(error=str(error))
        if args.output_format == TraceSummaryArgs.Format.TEXTPROTO:
            return TraceSummaryResult(textproto_summary=format_text(summary))
        return TraceSummaryResult(proto_summary=summary.encode())

    def _register(self, args: RegisterSqlPackageArgs) -> RegisterSqlPackageResult:
        self._processor.add_modules({module.name: module.sql for module in args.modules})
        return RegisterSqlPackageResult()

    def _stream(self, body: bytes) -> Iterator[bytes]:
        for request in TraceProcessorRpcStream.decode(body).msg:
            for reply in self._replies(request):
                reply.seq = self._sent
                self._sent += 1
                if not reply.has("invalid_request"):
                    reply.response = request.request
                yield TraceProcessorRpcStream(msg=[reply]).encode()

    def _replies(self, request: TraceProcessorRpc) -> Iterator[TraceProcessorRpc]:
        method = request.request
        if method == _Method.TPM_QUERY_STREAMING and request.query_args is not None:
            for result in self._query(request.query_args.sql_query):
                yield TraceProcessorRpc(query_result=result)
        elif method == _Method.TPM_APPEND_TRACE_DATA:
            yield TraceProcessorRpc(append_result=self._append(request.append_trace_data))
        elif method == _Method.TPM_FINALIZE_TRACE_DATA:
            yield TraceProcessorRpc(finalize_data_result=self._complete())
        elif method == _Method.TPM_GET_STATUS:
            yield TraceProcessorRpc(status=self._status())
        elif method == _Method.TPM_RESTORE_INITIAL_TABLES:
            self._restore()
            yield TraceProcessorRpc()
        elif method == _Method.TPM_REGISTER_SQL_PACKAGE and request.register_sql_package_args:
            registered = self._register(request.register_sql_package_args)
            yield TraceProcessorRpc(register_sql_package_result=registered)
        elif method == _Method.TPM_SUMMARIZE_TRACE and request.trace_summary_args is not None:
            summary = self._summarize(request.trace_summary_args.encode())
            yield TraceProcessorRpc(trace_summary_result=summary)
        else:
            yield TraceProcessorRpc(invalid_request=method)
