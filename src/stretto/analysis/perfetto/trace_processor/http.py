"""A trace that a server holds: `stretto query --serve`, or Perfetto's trace processor."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any

from stretto.analysis.perfetto.common.exceptions import PerfettoException
from stretto.analysis.rpc.cells import rows_of
from stretto.protos.trace_processor import (
    AppendTraceDataResult,
    QueryArgs,
    QueryResult,
    StatusResult,
    TraceSummary,
    TraceSummaryArgs,
    TraceSummaryResult,
    TraceSummarySpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stretto.analysis.perfetto.trace_processor.local import Table


class TraceProcessorHttp:
    """Sends requests to a server.

    Args:
        url: The server's host and port.
    """

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"))

    def load(self, pieces: Iterable[bytes]) -> None:
        """Send a trace.

        Raises:
            PerfettoException: The server can't read it.
        """
        for piece in pieces:
            result = AppendTraceDataResult.decode(self._send("/parse", piece))
            if result.error:
                raise PerfettoException(result.error)
        if error := self._send("/notify_eof"):
            raise PerfettoException(error.decode(errors="replace"))

    def query(self, sql: str) -> Table:
        """Run statements, and return the columns and rows of the last one."""
        result = QueryResult.decode(self._send("/query", QueryArgs(sql_query=sql).encode()))
        if result.error:
            raise PerfettoException(result.error)
        columns = list(result.column_names)
        return columns, rows_of(len(columns), result.batch)

    def trace_summary(
        self, specs: Sequence[str | bytes], ids: Sequence[str] | None, metadata_id: str | None
    ) -> TraceSummary:
        """Compute a summary."""
        computed = TraceSummaryArgs.ComputationSpec(
            run_all_metrics=ids is None, metric_ids=ids or (), metadata_query_id=metadata_id
        )
        args = TraceSummaryArgs(
            textproto_specs=[spec for spec in specs if isinstance(spec, str)],
            proto_specs=[TraceSummarySpec.decode(s) for s in specs if not isinstance(s, str)],
            computation_spec=computed,
            output_format=TraceSummaryArgs.Format.BINARY_PROTOBUF,
        )
        result = TraceSummaryResult.decode(self._send("/trace_summary", args.encode()))
        if result.error:
            raise PerfettoException(result.error)
        return TraceSummary.decode(result.proto_summary)

    def status(self) -> StatusResult:
        """Return the server's version, and the name of its trace."""
        return StatusResult.decode(self._send("/status"))

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _send(self, path: str, body: Any = None) -> bytes:
        try:
            self._connection.request("GET" if body is None else "POST", path, body)
            with self._connection.getresponse() as response:
                data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise PerfettoException(f"the server doesn't answer: {error}") from error
        if response.status != http.HTTPStatus.OK:
            raise PerfettoException(f"{path}: {response.status} {data.decode(errors='replace')}")
        return data
