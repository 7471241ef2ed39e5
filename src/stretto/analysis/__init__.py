"""Reading and converting traces. The package doesn't import the recording side."""

from __future__ import annotations

from stretto.analysis.sql.errors import QueryError
from stretto.analysis.trace_processor import QueryResult, TraceProcessor

__all__ = ["QueryError", "QueryResult", "TraceProcessor"]
