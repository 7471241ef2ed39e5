"""Several traces in this process; each query runs on all of them, on threads.

`stretto.analysis.Batch` runs on processes, and keeps no trace in memory.
"""

from __future__ import annotations

import abc
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from stretto.analysis.closing import Closing
from stretto.analysis.perfetto.common.exceptions import PerfettoException
from stretto.analysis.perfetto.common.query_result_iterator import dataframes
from stretto.analysis.perfetto.trace_processor.api import TraceProcessor, TraceProcessorConfig
from stretto.analysis.perfetto.trace_uri_resolver.path import PathUriResolver
from stretto.analysis.perfetto.trace_uri_resolver.registry import ResolverRegistry
from stretto.analysis.perfetto.trace_uri_resolver.resolver import TraceUriResolver

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.analysis.perfetto.trace_uri_resolver.registry import TraceListReference

    Metadata = dict[str, str]
    Function = Callable[[TraceProcessor], Any]


class FailureHandling(Enum):
    """What happens if a trace can't be read, or a query fails."""

    RAISE_EXCEPTION = 0
    INCREMENT_STAT = 1


@dataclass
class BatchTraceProcessorConfig:
    """Options."""

    tp_config: TraceProcessorConfig = field(default_factory=TraceProcessorConfig)
    load_failure_handling: FailureHandling = FailureHandling.RAISE_EXCEPTION
    execute_failure_handling: FailureHandling = FailureHandling.RAISE_EXCEPTION


@dataclass
class Stats:
    """The number of failures that raised no exception."""

    load_failures: int = 0
    execute_failures: int = 0


class _Resolved(TraceUriResolver):
    """A trace that was found already."""

    def __init__(self, found: ResolverRegistry.Result) -> None:
        self._found = found

    def resolve(self) -> list[TraceUriResolver.Result]:
        return [self.Result(self._found.generator, self._found.metadata)]


class BatchTraceProcessor(Closing):
    """Several traces.

    Args:
        traces: A reference to traces, as of `TraceProcessor`, or a list of them.
        config: Options.
        observer: Notified of each trace that was queried.

    Raises:
        PerfettoException: A trace can't be read.
    """

    class Observer(abc.ABC):
        """Is notified of each trace that was queried."""

        @abc.abstractmethod
        def trace_processed(self, metadata: Metadata, execution_time_seconds: float) -> None:
            """A trace was queried."""

    def __init__(
        self,
        traces: TraceListReference,
        config: BatchTraceProcessorConfig | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.config = config or BatchTraceProcessorConfig()
        self.observer = observer
        self._stats = Stats()
        registry = self.config.tp_config.resolver_registry or ResolverRegistry([PathUriResolver])
        self._executor = ThreadPoolExecutor(os.cpu_count())
        loaded = self._executor.map(self._load, registry.resolve(traces))
        self.tps_and_metadata = [each for each in loaded if each is not None]

    def _load(self, found: ResolverRegistry.Result) -> tuple[TraceProcessor, Metadata] | None:
        try:
            return TraceProcessor(_Resolved(found), config=self.config.tp_config), found.metadata
        except (PerfettoException, OSError):
            if self.config.load_failure_handling == FailureHandling.RAISE_EXCEPTION:
                raise
            self._stats.load_failures += 1
            return None

    def query(self, sql: str) -> list[Any]:
        """Return a pandas dataframe per trace."""
        return self.execute(lambda tp: tp.query(sql).as_pandas_dataframe())

    def query_and_flatten(self, sql: str) -> Any:
        """Return one pandas dataframe, with columns for the metadata of each row's trace."""
        return self.execute_and_flatten(lambda tp: tp.query(sql).as_pandas_dataframe())

    def query_polars(self, sql: str) -> list[Any]:
        """Return a polars dataframe per trace."""
        return self.execute(lambda tp: tp.query(sql).as_polars_dataframe())

    def query_and_flatten_polars(self, sql: str) -> Any:
        """Return one polars dataframe, with columns for the metadata of each row's trace."""
        return self.execute_and_flatten_polars(lambda tp: tp.query(sql).as_polars_dataframe())

    def query_single_result(self, sql: str) -> list[Any]:
        """Return one value per trace.

        Raises:
            PerfettoException: A result isn't a single value.
        """

        def value(processor: TraceProcessor) -> Any:
            result = processor.query(sql)
            if (result.row_count, result.column_count) != (1, 1):
                raise PerfettoException("the query must give one row of one column")
            return getattr(next(result), result.column_names[0])

        return self.execute(value)

    def execute(self, fn: Function) -> list[Any]:
        """Call a function with each trace, and return the results."""
        return [value for _, value in self._execute(fn)]

    def execute_and_flatten(self, fn: Function) -> Any:
        """Call a function that returns a pandas dataframe; return one dataframe with metadata."""
        pandas = dataframes("pandas")
        frames = [frame.assign(**metadata) for metadata, frame in self._execute(fn)]
        return pandas.concat(frames, ignore_index=True)

    def execute_and_flatten_polars(self, fn: Function) -> Any:
        """Call a function that returns a polars dataframe; return one dataframe with metadata."""
        polars = dataframes("polars")
        frames = [
            frame.with_columns(polars.lit(value).alias(key) for key, value in metadata.items())
            for metadata, frame in self._execute(fn)
        ]
        return polars.concat(frames)

    def _execute(self, fn: Function) -> list[tuple[Metadata, Any]]:
        def call(pair: tuple[TraceProcessor, Metadata]) -> tuple[Metadata, Any] | None:
            processor, metadata = pair
            began = time.monotonic()
            try:
                value = fn(processor)
            except PerfettoException as error:
                if self.config.execute_failure_handling == FailureHandling.RAISE_EXCEPTION:
                    raise PerfettoException(f"{metadata} {error}") from error
                self._stats.execute_failures += 1
                return None
            if self.observer is not None:
                self.observer.trace_processed(metadata, time.monotonic() - began)
            return metadata, value

        done = self._executor.map(call, self.tps_and_metadata)
        return [each for each in done if each is not None]

    def metric(self, metrics: list[str]) -> list[Any]:
        """Refuse: metrics of version 1 are not available."""
        return self.execute(lambda tp: tp.metric(metrics))

    def stats(self) -> Stats:
        """Return the number of failures."""
        return self._stats

    def close(self) -> None:
        """Free the traces."""
        for processor, _ in self.tps_and_metadata:
            processor.close()
        self._executor.shutdown()
