"""Reading and converting traces. The package doesn't import the recording side."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.analysis.batch import Batch, BatchError, IncompleteTraceWarning
    from stretto.analysis.query_result import QueryResult
    from stretto.analysis.sql.errors import QueryError
    from stretto.analysis.trace_addresses import Trace
    from stretto.analysis.trace_processor import TraceProcessor

__all__ = [
    "Batch",
    "BatchError",
    "IncompleteTraceWarning",
    "QueryError",
    "QueryResult",
    "Trace",
    "TraceProcessor",
]

_MODULES = {
    "Batch": "batch",
    "BatchError": "batch",
    "IncompleteTraceWarning": "batch",
    "QueryError": "sql.errors",
    "QueryResult": "query_result",
    "Trace": "trace_addresses",
    "TraceProcessor": "trace_processor",
}


def __getattr__(name: str) -> object:
    """Import what is used: a summary needs no SQL, and a query no multiprocessing."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
