"""Sums what threads have waited for: files, peers and timers (`stretto record --io-waits`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.trace_tables import table_columns, table_rows

if TYPE_CHECKING:
    from collections.abc import Collection

    from stretto import _native

CATEGORIES = {"linux.syscall_waits", "python.io_waits"}
_TARGETS = {"debug.file", "debug.peer"}


class IoWait(NamedTuple):
    """The waits of a process in one call, for one file or peer; times in ns.

    Attributes:
        call: The name of the call, such as `recvfrom`.
        target: The file or peer; "" if it has none, or it is unknown.
        process: The name of the process.
        number: The number of waits.
        total: Their time.
        max: The time of the longest.
    """

    call: str
    target: str
    process: str
    number: int
    total: int
    max: int


def io_waits(
    importer: _native.TraceImporter, end: int, categories: Collection[str]
) -> list[IoWait]:
    """Return the waits, those that took most time first.

    Args:
        importer: The trace.
        end: The end of the trace, and so of the waits that have not ended.
        categories: The categories of slices that the trace has. All slices are read only if there
            are waits among them.
    """
    if CATEGORIES.isdisjoint(categories):
        return []
    columns = ("category", "dur", "ts", "name", "arg_set_id", "track_id")
    slices = [
        row
        for row in table_columns(importer, "slice", *columns)
        if row[0] in CATEGORIES and row[1] != 0
    ]
    targets = _targets(importer, {row[4] for row in slices}) if slices else {}
    processes = _processes(importer) if slices else {}
    sums: dict[tuple[str, str, str], list[int]] = {}
    for _, duration, begin, name, arguments, track in slices:
        key = (name, targets.get(arguments, ""), processes.get(track, ""))
        sums.setdefault(key, []).append(duration if duration > 0 else end - begin)
    found = [IoWait(*key, len(times), sum(times), max(times)) for key, times in sums.items()]
    return sorted(found, key=lambda wait: -wait.total)


def _targets(importer: _native.TraceImporter, sets: set[int]) -> dict[int, str]:
    """Return the file or peer in each set of arguments."""
    rows = table_columns(importer, "__intrinsic_args", "arg_set_id", "key", "string_value")
    return {key: value for key, name, value in rows if name in _TARGETS and key in sets}


def _processes(importer: _native.TraceImporter) -> dict[int, str]:
    """Return the name of the process of each thread's track."""
    names = {
        upid: name or f"process {pid}"
        for upid, name, pid in table_columns(importer, "process", "upid", "name", "pid")
    }
    of_thread = dict(table_columns(importer, "thread", "utid", "upid"))
    return {
        row["id"]: names.get(of_thread.get(row["utid"]), "")
        for row in table_rows(importer, "__intrinsic_track")
        if row["utid"] is not None
    }
