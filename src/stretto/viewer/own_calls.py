"""The calls of the program's own functions in a trace: neither imports nor installed code.

    lanes of the program's threads, in the order of the UI      rows of the screen
        main thread    app.py                                    0
                         import json | main | asyncio.run        1   `main` is an own call
                                       load                      2   so is `load`
        Thread-1       fetch                                     4

The UI doesn't draw names in bars that are too narrow, and shows as many rows as fit.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.trace_summary import FUNCTIONS
from stretto.analysis.trace_tables import import_trace, table_columns, table_rows
from stretto.base.errors import DecodeError
from stretto.base.installed_code import is_installed

if TYPE_CHECKING:
    from stretto import _native

MOST_THREADS = 4
"""The largest number of a child process's threads whose lanes are expanded."""
READABLE_PART = 0.04
"""A bar of this part of the visible time has room for some letters of its name."""
SCREEN_ROWS, PANEL_ROWS = 24, 8
"""Rows of slices on a screen of 1280 x 800, without and with the panel below the lanes."""
SOURCES = "source", "source_location"
"""The arguments of a slice that hold its interned or its inline source location."""
_FILES = {f"{source}.file_name" for source in SOURCES}
_LINES = {f"{source}.line_number" for source in SOURCES}
_FIRST_LINE = 1
"""The line of a module's body: that is an import, or the script."""


class OwnCall(NamedTuple):
    """A call of one of the program's functions; times in ns of the trace's clock."""

    name: str
    begin: int
    end: int
    row: int | None
    """Its row on the screen; None if it belongs to a child process."""
    thread: tuple[int, int]
    """The pid and the tid of its thread."""


class OwnCalls(NamedTuple):
    """The own calls of a trace.

    Attributes:
        begin: The first slice's begin.
        end: The last slice's end, or the last log record.
        calls: The calls.
        start: When the program's code, other than imports, began: with an own call, or one from the
            script itself, such as `asyncio.run`.
        logs: Whether there are log records: the UI then opens the panel with their table.
        worker: If the own calls of all child processes are longer, in sum, than those of the
            program: the pid of the child process with the longest, of equal ones that which began
            first, and the tids of its threads with the longest calls. Else empty.
    """

    begin: int
    end: int
    calls: list[OwnCall]
    start: int
    logs: bool
    worker: list[int]

    def readable(self, begin: int, end: int) -> set[str]:
        """Return the functions whose names a screen shows from `begin` to `end`."""
        shortest = (end - begin) * READABLE_PART
        rows = PANEL_ROWS if self.logs else SCREEN_ROWS
        return {
            call.name
            for call in self.calls
            if call.row is not None
            and call.row < rows
            and min(call.end, end) - max(call.begin, begin) >= shortest
        }


def own_calls(trace: bytes, pid: int) -> OwnCalls | None:
    """Return the own calls of a trace; None if there are none.

    Args:
        trace: The trace, or its beginning.
        pid: The program's process.
    """
    try:
        importer = import_trace(trace)
    except DecodeError:
        return None
    slices = _slices(importer)
    own, scripts = _own_sets(importer)
    threads = _threads(importer)
    tops = _top_rows(threads, slices, pid)
    calls = [
        OwnCall(each.name, each.begin, each.end, _row(each, tops), threads[each.track])
        for each in slices
        if each.arguments in own and each.category == FUNCTIONS and each.track in threads
    ]
    if not calls:
        return None
    first = min(call.begin for call in calls)
    bodies = {each.id for each in slices if each.arguments in scripts}
    called = (each.begin for each in slices if each.parent in bodies and not _is_import(each))
    begin, end = min(each.begin for each in slices), max(each.end for each in slices)
    logs = [ts for ts, _ in table_columns(importer, "android_logs", "ts", "utid")]
    worker = _worker(calls, pid)
    return OwnCalls(begin, max([end, *logs]), calls, min([first, *called]), bool(logs), worker)


def _worker(calls: list[OwnCall], program: int) -> list[int]:
    processes: Counter[int] = Counter()
    threads: Counter[int] = Counter()
    for call in sorted(calls, key=lambda call: call.begin):
        processes[call.thread[0]] += call.end - call.begin
    of_program = processes.pop(program, 0)
    # Children that share the work: each of them may do less than the program, which waits for them.
    if processes.total() <= of_program:
        return []
    ((pid, _),) = processes.most_common(1)
    for call in calls:
        if call.thread[0] == pid:
            threads[call.thread[1]] += call.end - call.begin
    return [pid, *(tid for tid, _ in threads.most_common(MOST_THREADS))]


class _Slice(NamedTuple):
    id: int
    parent: int | None
    name: str
    category: str
    begin: int
    end: int
    track: int
    depth: int
    arguments: int | None


def _slices(importer: _native.TraceImporter) -> list[_Slice]:
    columns = (
        "id",
        "parent_id",
        "name",
        "category",
        "ts",
        "dur",
        "track_id",
        "depth",
        "arg_set_id",
    )
    return [
        _Slice(number, parent, name, category, ts, ts + dur, track, depth, arguments)
        for number, parent, name, category, ts, dur, track, depth, arguments in table_columns(
            importer, "slice", *columns
        )
        if dur > 0
    ]


def _is_import(each: _Slice) -> bool:
    return each.category != FUNCTIONS or each.name.startswith("import ")


def _own_sets(importer: _native.TraceImporter) -> tuple[set[int], set[int]]:
    """Return the argument sets with the location of an own function, and of an own module body."""
    files, bodies = {}, set()
    columns = ("key", "arg_set_id", "string_value", "int_value")
    for key, arguments, text, number in table_columns(importer, "__intrinsic_args", *columns):
        if key in _FILES:
            files[arguments] = text
        elif key in _LINES and number == _FIRST_LINE:
            bodies.add(arguments)
    installed = {path: is_installed(path) or path.startswith("<") for path in set(files.values())}
    own = {number for number, path in files.items() if not installed[path]}
    return own - bodies, own & bodies


def _threads(importer: _native.TraceImporter) -> dict[int, tuple[int, int]]:
    """Return the pid and the tid of each thread's track of slices."""
    pids = {row["upid"]: row["pid"] for row in table_rows(importer, "process")}
    threads = {
        row["utid"]: (pids[row["upid"]], row["tid"])
        for row in table_rows(importer, "thread")
        if row["upid"] in pids
    }
    return {
        row["id"]: threads[row["utid"]]
        for row in table_rows(importer, "__intrinsic_track")
        if row["utid"] in threads and row["type"] == "thread_execution"
    }


def _top_rows(
    threads: dict[int, tuple[int, int]], slices: list[_Slice], program: int
) -> dict[int, int]:
    """Return the first row of each thread of the program, by track."""
    heights: dict[int, int] = {}
    for each in slices:
        heights[each.track] = max(heights.get(each.track, 0), each.depth + 1)
    tracks = [
        ((tid != program, tid), track)
        for track, (pid, tid) in threads.items()
        if pid == program and track in heights
    ]
    tops, top = {}, 0
    for _, track in sorted(tracks):
        tops[track] = top
        top += heights[track] + 1
    return tops


def _row(each: _Slice, tops: dict[int, int]) -> int | None:
    top = tops.get(each.track)
    return None if top is None else top + each.depth
