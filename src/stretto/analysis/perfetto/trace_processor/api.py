"""One trace, queried by SQL."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from stretto.analysis.closing import Closing
from stretto.analysis.perfetto.common import query_result_iterator
from stretto.analysis.perfetto.common.exceptions import PerfettoException
from stretto.analysis.perfetto.trace_processor.http import TraceProcessorHttp
from stretto.analysis.perfetto.trace_processor.local import LocalBackend
from stretto.analysis.perfetto.trace_uri_resolver.path import PathUriResolver
from stretto.analysis.perfetto.trace_uri_resolver.registry import ResolverRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stretto.analysis.perfetto.trace_uri_resolver.registry import TraceReference
    from stretto.protos.trace_processor import TraceSummary

TraceProcessorException = PerfettoException
_UNAVAILABLE = "{} is not available in Stretto{}"


@dataclass
class SqlPackage:
    """A folder of SQL modules.

    Attributes:
        path: The folder.
        package: The first part of the modules' names; the default is the folder's name.
    """

    path: str
    package: str | None = None


@dataclass
class TraceProcessorConfig:
    """Options. Those about the binary of the trace processor have no effect.

    As in the package `perfetto`, the tables `ftrace_event` and `raw` are empty without
    `ingest_ftrace_in_raw`.
    """

    bin_path: str | None = None
    unique_port: bool = True
    verbose: bool = False
    ingest_ftrace_in_raw: bool = False
    enable_dev_features: bool = False
    resolver_registry: ResolverRegistry | None = None
    load_timeout: int = 30
    extra_flags: list[str] | None = None
    add_sql_packages: list[str | SqlPackage] | None = field(default=None)
    fetch_latest_trace_processor: bool = False
    enable_sql_file_access: bool = False


class TraceProcessor(Closing):
    """One trace.

    Args:
        trace: A path, an open file, an iterable of bytes, a URI, or a resolver.
        addr: The address of a server, instead of reading the trace in this process.
        config: Options.
        file_path: A path, instead of `trace`.
        metadata: More metadata of the trace.
        remote: Like `addr`.

    Raises:
        PerfettoException: The arguments exclude each other, or the trace can't be read.
    """

    QueryResultIterator = query_result_iterator.QueryResultIterator
    Row = QueryResultIterator.Row

    def __init__(  # noqa: PLR0917  # the order of the package perfetto
        self,
        trace: TraceReference | None = None,
        addr: str | None = None,
        config: TraceProcessorConfig | None = None,
        file_path: str | None = None,
        metadata: dict[str, str] | None = None,
        remote: str | None = None,
    ) -> None:
        if trace is not None and file_path is not None:
            raise PerfettoException("give trace or file_path, not both")
        if addr is not None and remote is not None:
            raise PerfettoException("give addr or remote, not both")
        self.config = config or TraceProcessorConfig()
        self.resolver_registry = self.config.resolver_registry or ResolverRegistry(
            [PathUriResolver]
        )
        self._metadata = dict(metadata or {})
        server = addr or remote
        self._backend: LocalBackend | TraceProcessorHttp = (
            LocalBackend(_packages(self.config), raw_events=self.config.ingest_ftrace_in_raw)
            if server is None
            else TraceProcessorHttp(server)
        )
        reference: Any = file_path if trace is None else trace
        if reference is not None:
            self._load(reference)

    def _load(self, reference: Any) -> None:
        found = self.resolver_registry.resolve(reference)
        if len(found) != 1:
            raise PerfettoException(
                f"this stands for {len(found)} traces: a BatchTraceProcessor reads several"
                if found
                else "there is no such trace"
            )
        self._metadata |= found[0].metadata
        self._backend.load(found[0].generator)

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata that resolvers gave the trace."""
        return self._metadata

    def query(self, sql: str) -> query_result_iterator.QueryResultIterator:
        """Run SQL statements; return the rows of the last one.

        Raises:
            PerfettoException: A statement is wrong.
        """
        return self.QueryResultIterator(*self._backend.query(sql))

    def trace_summary(
        self,
        specs: Sequence[str | bytes],
        metric_ids: Sequence[str] | None = None,
        metadata_query_id: str | None = None,
    ) -> TraceSummary:
        """Compute the metrics of specs.

        Args:
            specs: TraceSummarySpec messages, as text or encoded.
            metric_ids: The metrics; None for all.
            metadata_query_id: The query whose rows become the summary's metadata.

        Raises:
            PerfettoException: A spec is wrong.
        """
        return self._backend.trace_summary(specs, metric_ids, metadata_query_id)

    def metric(self, metrics: Sequence[str]) -> NoReturn:
        """Refuse: metrics of version 1 are not available."""
        raise PerfettoException(_UNAVAILABLE.format("metric()", ": use trace_summary()"))

    def export(self, output_path: str, export_format: str) -> NoReturn:
        """Refuse: archives of the trace processor are not available."""
        raise PerfettoException(
            _UNAVAILABLE.format("export()", ": stretto.analysis.Batch exports Parquet")
        )

    def enable_metatrace(self) -> NoReturn:
        """Refuse: there is no trace of the trace processor itself."""
        raise PerfettoException(_UNAVAILABLE.format("the metatrace", ""))

    disable_and_read_metatrace = enable_metatrace

    def close(self) -> None:
        """Free the trace, or end the connection."""
        self._backend.close()


def _packages(config: TraceProcessorConfig) -> Iterator[tuple[str, str]]:
    for package in config.add_sql_packages or ():
        given = SqlPackage(package) if isinstance(package, str) else package
        yield given.path, given.package or os.path.basename(os.path.normpath(given.path))
