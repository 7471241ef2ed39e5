"""Stacks with their times: of slices, or of samples if no slice is a call."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sample_weights import SampleHits, sample_hits
from stretto.analysis.table_rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto import _native
    from stretto.analysis.export.lanes import Lane, Slice

    Totals = dict[tuple["Origin", tuple[str, ...]], tuple[float, int]]
    """The self time or the samples of each stack, and how often it occurred."""

NANOSECONDS, SAMPLES = "nanoseconds", "none"
OBSERVED = frozenset(
    [
        "linux.syscall_waits",
        *(f"python.{name}" for name in ("gc", "gil_waits", "io_waits", "loops", "waits")),
    ]
)
"""Categories of slices that `stretto record` writes beside samples, and which are no calls."""


class Origin(NamedTuple):
    """Whose stacks they are: a lane of a process, and what took the samples, if they are such."""

    lane: str
    process: str
    pid: int
    source: str = ""


class Stack(NamedTuple):
    """A stack of a lane, its self time in ns (or its samples), and how often it occurred.

    If the trace has stacks of several processes, `lane` names the process, too; if it has samples
    of several sources, as `python.cpu` and `python.wall`, the source, which is also `source`; the
    sum over sources means nothing. Samples of longer periods count as several
    (`sample_weights.py`).
    """

    lane: str
    names: tuple[str, ...]
    value: int
    calls: int
    source: str = ""


class Stacks(NamedTuple):
    """All stacks of a trace.

    Attributes:
        unit: What the values are: NANOSECONDS or SAMPLES.
        is_sampled: Whether the calls of each stack are samples.
    """

    unit: str
    stacks: list[Stack]
    is_sampled: bool = False


def read_stacks(
    importer: _native.TraceImporter, lanes: list[Lane], *, prefers_time: bool = False
) -> Stacks:
    """Return the stacks of a trace.

    Args:
        importer: The trace.
        lanes: Its lanes.
        prefers_time: Whether the values of samples are times, if the trace tells all periods.
    """
    has_calls = any(_is_call(each) for lane in lanes for each in lane.slices)
    hits = [] if has_calls else list(_all_hits(importer))
    if hits or not lanes:
        is_timed = prefers_time and all(each.time_ns for each in hits)
        unit = NANOSECONDS if is_timed else SAMPLES
        return Stacks(unit, _named(_of_samples(importer, hits, unit)), is_sampled=True)
    return Stacks(NANOSECONDS, _named(_of_slices(lanes)))


def _named(totals: Totals) -> list[Stack]:
    """Return the stacks, with what tells them from those of other processes and sources."""
    has_processes = len({origin.pid for origin, _ in totals}) > 1
    has_sources = len({origin.source for origin, _ in totals}) > 1
    return [
        Stack(
            _lane_name(origin, has_processes, has_sources),
            stack,
            round(value),
            calls,
            origin.source if has_sources else "",
        )
        for (origin, stack), (value, calls) in totals.items()
    ]


def _lane_name(origin: Origin, has_processes: bool, has_sources: bool) -> str:
    process = f" of {origin.process or 'process'} {origin.pid}" if origin.pid else ""
    source = f" by {origin.source}" if origin.source else ""
    return f"{origin.lane}{process * has_processes}{source * has_sources}"


def _of_slices(lanes: list[Lane]) -> Totals:
    totals: Totals = {}
    for lane in lanes:
        origin = Origin(lane.name, lane.process, lane.pid)
        for names, self_time in self_times(lane.slices):
            total, calls = totals.get((origin, names), (0, 0))
            totals[origin, names] = total + self_time, calls + 1
    return totals


def _is_call(found: Slice) -> bool:
    return found.end > found.start and found.category not in OBSERVED


def self_times(slices: list[Slice]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Give the names from the outermost to each slice, and the slice's self time."""
    open_slices: list[tuple[Slice, tuple[str, ...], list[int]]] = []
    for each in slices:
        while len(open_slices) > each.depth:
            yield _closed(open_slices.pop())
        above = open_slices[-1] if open_slices else None
        if above is not None:
            above[2][0] += each.end - each.start
        names = (*(above[1] if above else ()), each.name)
        open_slices.append((each, names, [0]))
    while open_slices:
        yield _closed(open_slices.pop())


def _closed(entry: tuple[Slice, tuple[str, ...], list[int]]) -> tuple[tuple[str, ...], int]:
    closed, names, (inside,) = entry
    return names, max(closed.end - closed.start - inside, 0)


def _of_samples(importer: _native.TraceImporter, found: list[SampleHits], unit: str) -> Totals:
    stack_of, origin_of = _stack_names(importer), _sample_origins(importer)
    totals: Totals = {}
    for hits in found:
        key = origin_of(hits), stack_of(hits.callsite)
        value, count = totals.get(key, (0, 0))
        each = hits.time_ns if unit == NANOSECONDS else hits.weight
        totals[key] = value + hits.samples * each, count + hits.samples
    return totals


def _stack_names(importer: _native.TraceImporter) -> Callable[[int], tuple[str, ...]]:
    """Return a function that gives the names on a stack, from the outermost."""
    frames = {row["id"]: row["name"] or "?" for row in rows_of(importer, "stack_profile_frame")}
    sites = {row["id"]: row for row in rows_of(importer, "stack_profile_callsite")}

    @cache
    def stack_of(callsite: int) -> tuple[str, ...]:
        names = []
        at: int | None = callsite
        while at is not None:
            names.append(frames.get(sites[at]["frame_id"], "?"))
            at = sites[at]["parent_id"]
        return tuple(reversed(names))

    return stack_of


def _sample_origins(importer: _native.TraceImporter) -> Callable[[SampleHits], Origin]:
    threads = {row["utid"]: row for row in rows_of(importer, "thread")}
    processes = {row["upid"]: row for row in rows_of(importer, "process")}

    def origin_of(hits: SampleHits) -> Origin:
        thread = threads.get(hits.utid, {})
        process = processes.get(thread.get("upid"), {})
        lane = thread.get("name") or f"thread {thread.get('tid', 0)}"
        return Origin(lane, process.get("name") or "", process.get("pid") or 0, hits.counter)

    return origin_of


def _all_hits(importer: _native.TraceImporter) -> Iterator[SampleHits]:
    for row in rows_of(importer, "cpu_profile_stack_sample"):
        if row["callsite_id"] is not None:
            yield SampleHits(row["utid"], row["callsite_id"], 1, 1)
    yield from sample_hits(importer)
