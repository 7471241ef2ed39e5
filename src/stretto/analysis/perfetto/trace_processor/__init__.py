"""One trace, queried by SQL."""

from __future__ import annotations

from stretto.analysis.perfetto.trace_processor.api import (
    SqlPackage,
    TraceProcessor,
    TraceProcessorConfig,
    TraceProcessorException,
)
from stretto.analysis.perfetto.trace_processor.http import TraceProcessorHttp

__all__ = [
    "SqlPackage",
    "TraceProcessor",
    "TraceProcessorConfig",
    "TraceProcessorException",
    "TraceProcessorHttp",
]
