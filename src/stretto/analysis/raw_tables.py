"""The tables of raw events, which take much memory, and are made when a query names one.

    query names ftrace_event ──> the trace is read again ──> tables, views, more rows of args

Raw events are those of the kernel and of Chromium as they were written. The other tables don't
change: a trace gives the same ids each time it is read.
"""

from __future__ import annotations

import re
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO

from stretto.analysis.open_packets import STANDARD_INPUT
from stretto.analysis.sql.errors import QueryError
from stretto.analysis.trace_tables import import_trace
from stretto.base.errors import StrettoError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto import _native

    Trace = str | PathLike[str] | bytes | BinaryIO

TABLES = {
    "__intrinsic_ftrace_event": "id, ts, name, utid, {args}, common_flags, ucpu",
    "__intrinsic_chrome_raw": "id, ts, name, utid, {args}",
}
"""The tables, with their columns."""
ARGS = "_raw_args"
"""The importer's table with the arguments of raw events; its ids count from 0."""
NAMES = (*TABLES, "ftrace_event", "raw")
"""The names of the tables and views."""

_NAMED = re.compile(
    r"""(?<![\w$]) (?: (?:__intrinsic_)?ftrace_event | __intrinsic_chrome_raw ) (?![\w$(])
    | (?: \b(?:from|join) | , ) \s* "?raw\b (?!\s*\() """,
    re.IGNORECASE | re.VERBOSE,
)

CANNOT_READ = (
    "the tables of raw events are made by reading the trace again, which {reason}: give its path, "
    "or TraceProcessor(..., raw_events=True)"
)


def names_raw_table(sql: str) -> bool:
    """Whether a text names one of the tables or views."""
    return _NAMED.search(sql) is not None


def reopened(trace: Trace) -> Callable[[], Trace] | None:
    """Return a function that gives the trace from its beginning; None if it can be read once."""
    if isinstance(trace, str | PathLike):
        return None if str(trace) == STANDARD_INPUT else lambda: trace
    if isinstance(trace, bytes | bytearray | memoryview):
        return lambda: trace
    if not (hasattr(trace, "seekable") and trace.seekable()):
        return None
    place = trace.tell()

    def again() -> Trace:
        trace.seek(place)
        return trace

    return again


class RawTables:
    """The raw events of a trace.

    Args:
        importer: The trace.
        again: Gives the trace once more, from its beginning; None if this is impossible.
        wanted: None if the trace is read again for its raw events; True if the importer has them;
            False if the tables stay empty.
    """

    def __init__(
        self,
        importer: _native.TraceImporter,
        again: Callable[[], Trace] | None = None,
        wanted: bool | None = None,
    ) -> None:
        self._importer = importer
        self._again = again
        self._is_here = wanted is not None or not importer.raw_events()

    def read(self) -> _native.TraceImporter:
        """Return an importer that has the raw events.

        Raises:
            QueryError: The trace can't be read again.
        """
        if self._is_here:
            return self._importer
        if self._again is None:
            raise QueryError(CANNOT_READ.format(reason="can be read only once"))
        try:
            found = import_trace(self._again(), raw_events=True)
        except (OSError, ValueError, StrettoError) as error:
            raise QueryError(CANNOT_READ.format(reason=f"failed ({error})")) from error
        if found.raw_events() != self._importer.raw_events():
            raise QueryError(CANNOT_READ.format(reason="has changed"))
        return found


def table_query(table: str, source: str, first_set: int) -> str:
    """Return the query of a table's rows.

    Args:
        table: The table.
        source: The name of the importer's rows.
        first_set: What is added to the ids of arg sets. Events without arguments have 0.
    """
    args = f"coalesce(arg_set_id + {first_set}, 0) as arg_set_id"
    return f"select {TABLES[table].format(args=args)} from {source}"


def args_query(source: str, first_set: int) -> str:
    """Return the query of the arguments, with the ids that follow those of other arguments."""
    return (
        f"select id + {first_set} as id, arg_set_id + {first_set} as arg_set_id, flat_key, key, "
        f"int_value, string_value, real_value, value_type from {source}"
    )


VIEWS = """
create view ftrace_event as
    select id, ts, name, ucpu as cpu, utid, arg_set_id, common_flags, ucpu
    from __intrinsic_ftrace_event;
create view raw as select * from ftrace_event;
"""
"""The views."""
