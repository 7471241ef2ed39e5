"""Several traces, queried by SQL."""

from __future__ import annotations

from stretto.analysis.perfetto.batch_trace_processor.api import (
    BatchTraceProcessor,
    BatchTraceProcessorConfig,
    FailureHandling,
)

__all__ = ["BatchTraceProcessor", "BatchTraceProcessorConfig", "FailureHandling"]
