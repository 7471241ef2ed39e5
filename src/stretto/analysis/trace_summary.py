"""Summarizes an imported trace: functions, categories and lanes by time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.heap_totals import profiled_processes
from stretto.analysis.io_waits import io_waits
from stretto.analysis.missing import MISSING
from stretto.analysis.object_totals import object_graphs
from stretto.analysis.off_cpu import off_cpu
from stretto.analysis.sample_losses import sample_losses
from stretto.analysis.sample_totals import sampled_threads
from stretto.analysis.switch_losses import switch_losses
from stretto.analysis.thread_times import ThreadTimes, thread_times
from stretto.analysis.trace_tables import statistics, table_rows
from stretto.analysis.unexpected_tests import CATEGORY as TESTS
from stretto.analysis.unexpected_tests import unexpected_tests
from stretto.base.installed_code import NOT_OWN_CODE, ONLY_OWN_CODE, is_own_function
from stretto.base.notes_tracks import SHORTFALLS

if TYPE_CHECKING:
    from typing import Any

    from stretto import _native
    from stretto.analysis.heap_totals import ProfiledProcess
    from stretto.analysis.io_waits import IoWait
    from stretto.analysis.object_totals import ProcessObjects
    from stretto.analysis.off_cpu import OffCpu
    from stretto.analysis.sample_totals import SampledThread
    from stretto.analysis.unexpected_tests import UnexpectedTest

FUNCTIONS = "python.functions"
"""The category of function calls."""
TASKS = "python.asyncio"
"""The category of tasks: their coroutines in lanes, and their steps on the thread."""
_NO_COROUTINE = re.compile(r"await|Task-\d+")
"""Slices of a task's lane that are no coroutines."""
LOOPS = "python.loops"
"""The category of callbacks that blocked an event loop."""
GIL_TRACK = "GIL"
"""The track of a thread's waits for the GIL (`stretto record --gil-waits`)."""
LEFT_OUT = {
    ("python.asyncio", "tasks without a lane"): "tasks without a lane: `--ask losses` counts them",
    ("python.asyncio", "waits without a slice"): "short waits of tasks: `--ask losses` counts them",
    (FUNCTIONS, ONLY_OWN_CODE): NOT_OWN_CODE,
    ("linux.syscall_waits", "lost waits in system calls"): "some waits in system calls: the "
    "arguments of the instant `lost waits in system calls` count them",
}
"""What instants say about what isn't in the trace, by their category and name."""


class Times(NamedTuple):
    """The number and the times of a group of slices, in ns.

    `total` counts recursion once; `self` leaves out the slices inside. `cpu` is the CPU time of the
    slices in `total`, as far as the trace has it. `file` is the source file of a function; C
    functions have none. `thread` has the times of a lane's thread, slices or not, if the trace has
    them.
    """

    category: str
    name: str
    number: int
    total: int
    self: int
    p50: int
    p90: int
    p99: int
    max: int
    cpu: int
    file: str = ""
    thread: ThreadTimes | None = None


class Summary(NamedTuple):
    """What a trace holds.

    Attributes:
        seconds: The time from the first to the last event.
        recorded_ns: The start and the end of the recording; None if the trace doesn't have them.
        functions: Function calls, by self time; empty without such slices.
        own_functions: Those of the program's own functions, by total time.
        coroutines: Coroutines of tasks, from their first step to their end, by total time.
        slices: Slices of other categories, by total time; without the coroutines, and without their
            steps, which have the same names.
        categories: All slices by category; instants are slices of 0 ns.
        lanes: Threads and other tracks; `category` is the process, `name` the thread or track.
        gil_waits: The waits for the GIL of each thread, by total time; `category` is the process,
            `name` the thread.
        io_waits: What threads have waited for in calls of the system, by time.
        statistics: The sum of each statistic's values.
        unread: What the importer left out: number and reason.
        not_followed: What the recording left out.
        losses: What stack samples and scheduling lack, a line for each reason.
        samples: The stack samples of each thread.
        heaps: The heap profiles of each process.
        objects: The object graphs of each process.
        tests: The tests of a test run that did not pass.
        off_cpu: Where threads were off the CPU, and why; empty without scheduling events.
    """

    seconds: float
    recorded_ns: tuple[int, int] | None
    functions: list[Times]
    own_functions: list[Times]
    coroutines: list[Times]
    slices: list[Times]
    categories: list[Times]
    lanes: list[Times]
    gil_waits: list[Times]
    io_waits: list[IoWait]
    statistics: dict[str, int]
    unread: list[tuple[int, str]]
    not_followed: list[str]
    losses: list[str]
    samples: list[SampledThread]
    heaps: list[ProfiledProcess]
    objects: list[ProcessObjects]
    tests: list[UnexpectedTest]
    off_cpu: list[OffCpu]


def _times(row: tuple[Any, ...]) -> Times:
    category, name, _, *numbers, file = row
    return Times(category or "", name or "", *numbers)._replace(file=file or "")


class _Lane(NamedTuple):
    """A track: its process, the thread or own name, the times of its thread."""

    process: str
    name: str
    thread: ThreadTimes | None
    is_gil: bool
    """Whether the track may have the waits of the thread for the GIL."""


def _lanes(importer: _native.TraceImporter) -> list[_Lane]:
    """Return the lane of each track."""
    threads, processes = table_rows(importer, "thread"), table_rows(importer, "process")
    tracks = table_rows(importer, "__intrinsic_track")
    times = thread_times(importer, tracks, threads)
    lanes = []
    for track in tracks:
        name, upid = track["name"], track["upid"]
        is_gil = name == GIL_TRACK and track["utid"] is not None
        if track["utid"] is not None:
            thread = threads[track["utid"]]
            upid = thread["upid"]
            name = (name if not is_gil else "") or thread["name"] or f"thread {thread['tid']}"
        process = processes[upid] if upid is not None else None
        label = (process["name"] or f"process {process['pid']}") if process else ""
        # A lane with a name of its own, as of requests, isn't all that its thread does.
        is_thread = track["parent_id"] is None and not track["name"]
        own = times.get(track["utid"]) if is_thread else None
        lanes.append(_Lane(label, name or ("process" if process else ""), own, is_gil))
    return lanes


def _by_lane(importer: _native.TraceImporter) -> tuple[list[Times], list[Times]]:
    """Return the times of each lane, and those of each thread's waits for the GIL."""
    lanes = _lanes(importer)
    busy: list[Times] = []
    waits: list[Times] = []
    for row in importer.slice_totals("track")[2]:
        lane = lanes[row[2]]
        times = _times(row)._replace(category=lane.process, name=lane.name, thread=lane.thread)
        (waits if lane.is_gil else busy).append(times)
    return busy, waits


def _of_tasks(
    importer: _native.TraceImporter, by_name: list[Times]
) -> tuple[list[Times], list[Times]]:
    """Return the coroutines of tasks, and the other slices that are no function calls."""
    others = [times for times in by_name if times.category != FUNCTIONS and times.total]
    if not any(times.category == TASKS for times in others):
        return [], others
    by_task = [_times(row) for row in importer.slice_totals("task")[2]]
    lanes = [times for times in by_task if times.category == TASKS and times.total]
    coroutines = [times for times in lanes if not _NO_COROUTINE.fullmatch(times.name)]
    in_lanes = {(TASKS, times.name) for times in lanes}
    others = [times for times in others if (times.category, times.name) not in in_lanes]
    return coroutines, others + [times for times in lanes if _NO_COROUTINE.fullmatch(times.name)]


def summarize(importer: _native.TraceImporter) -> Summary:
    """Summarize an imported trace."""
    first, end, functions = importer.slice_totals("function")
    by_name = [_times(row) for row in functions]
    calls = [times for times in by_name if times.category == FUNCTIONS and times.max]
    own = [times for times in calls if is_own_function(times.name, times.file)]
    coroutines, others = _of_tasks(importer, by_name)
    lanes, gil_waits = _by_lane(importer)
    found = {(times.category, times.name) for times in by_name}
    categories = [_times(row) for row in importer.slice_totals("category")[2]]
    has_tests = any(times.category == TESTS for times in categories)
    has_shortfalls = any(times.category == SHORTFALLS for times in categories)
    times_of = {row["name"]: row["int_value"] for row in table_rows(importer, "metadata")}
    started, disabled = times_of.get("tracing_started_ns"), times_of.get("tracing_disabled_ns")
    sums = statistics(importer)
    return Summary(
        seconds=(end - first) / 1e9,
        recorded_ns=(started, disabled) if started and disabled else None,
        functions=sorted(calls, key=lambda times: -times.self),
        own_functions=sorted(own, key=lambda times: -times.total),
        coroutines=sorted(coroutines, key=lambda times: -times.total),
        slices=sorted(others, key=lambda times: -times.total),
        categories=sorted(categories, key=lambda times: -times.total),
        lanes=sorted(lanes, key=lambda times: -times.total),
        gil_waits=sorted(gil_waits, key=lambda times: -times.total),
        io_waits=io_waits(importer, end, {times.category for times in by_name}),
        statistics=sums,
        unread=[(sums[name], text) for name, text in MISSING.items() if sums[name]],
        not_followed=[f"left out: {text}" for key, text in LEFT_OUT.items() if key in found],
        losses=sample_losses(importer, sums, has_events=has_shortfalls) + switch_losses(importer),
        samples=sampled_threads(importer),
        heaps=profiled_processes(importer),
        objects=object_graphs(importer),
        # Reads all slices and arguments in Python.
        tests=unexpected_tests(importer) if has_tests else [],
        off_cpu=off_cpu(importer),
    )
