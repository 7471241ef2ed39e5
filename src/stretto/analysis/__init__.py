"""Reading and converting traces. The package doesn't import the recording side."""

from __future__ import annotations

from stretto.analysis.query_result import QueryResult
from stretto.analysis.sql.errors import QueryError
from stretto.analysis.trace_addresses import Trace
from stretto.analysis.trace_processor import TraceProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.analysis.batch import Batch, BatchError, IncompleteTraceWarning

__all__ = [
    "Batch",
    "BatchError",
    "IncompleteTraceWarning",
    "QueryError",
    "QueryResult",
    "Trace",
    "TraceProcessor",
]


def __getattr__(name: str) -> object:
    """Import the batch when it is used: it imports multiprocessing."""
    if name not in ("Batch", "BatchError", "IncompleteTraceWarning"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stretto.analysis import batch

    value: object = getattr(batch, name)
    return value
