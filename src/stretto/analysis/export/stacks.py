"""Stacks with their times: of slices, or of samples if no slice is a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sample_weights import SampleHits, sample_hits
from stretto.analysis.table_rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto import _native
    from stretto.analysis.export.lanes import Lane, Slice

NANOSECONDS, SAMPLES = "nanoseconds", "none"
OBSERVED = frozenset(
    [
        "linux.syscall_waits",
        *(f"python.{name}" for name in ("gc", "gil_waits", "io_waits", "loops", "waits")),
    ]
)
"""Categories of slices that `stretto record` writes beside samples, and which are no calls."""


class Stack(NamedTuple):
    """A stack of a lane, its self time in ns (or its samples), and how often it occurred.

    Samples of longer periods count as several (`sample_weights.py`).
    """

    lane: str
    names: tuple[str, ...]
    value: int
    calls: int


class Stacks(NamedTuple):
    """All stacks of a trace.

    Attributes:
        unit: What the values are: NANOSECONDS or SAMPLES.
    """

    unit: str
    stacks: list[Stack]


def read_stacks(importer: _native.TraceImporter, lanes: list[Lane]) -> Stacks:
    """Return the stacks of a trace."""
    has_calls = any(_is_call(each) for lane in lanes for each in lane.slices)
    samples = [] if has_calls else list(_of_samples(importer))
    if samples or not lanes:
        return Stacks(SAMPLES, samples)
    totals: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for lane in lanes:
        for names, self_time in self_times(lane.slices):
            total = totals.setdefault((lane.name, names), [0, 0])
            total[0] += self_time
            total[1] += 1
    return Stacks(
        NANOSECONDS,
        [Stack(lane, names, *total) for (lane, names), total in totals.items()],
    )


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


def _of_samples(importer: _native.TraceImporter) -> Iterator[Stack]:
    frames = {row["id"]: row["name"] or "?" for row in rows_of(importer, "stack_profile_frame")}
    sites = {row["id"]: row for row in rows_of(importer, "stack_profile_callsite")}
    threads = {row["utid"]: row for row in rows_of(importer, "thread")}
    counts: dict[tuple[int, int], tuple[float, int]] = {}
    for hits in _all_hits(importer):
        weight, count = counts.get((hits.utid, hits.callsite), (0, 0))
        weight += hits.samples * hits.weight
        counts[hits.utid, hits.callsite] = weight, count + hits.samples
    for (utid, site), (weight, count) in counts.items():
        names = []
        at: int | None = site
        while at is not None:
            names.append(frames.get(sites[at]["frame_id"], "?"))
            at = sites[at]["parent_id"]
        thread = threads.get(utid, {})
        lane = thread.get("name") or f"thread {thread.get('tid', 0)}"
        yield Stack(lane, tuple(reversed(names)), round(weight), count)


def _all_hits(importer: _native.TraceImporter) -> Iterator[SampleHits]:
    for row in rows_of(importer, "cpu_profile_stack_sample"):
        if row["callsite_id"] is not None:
            yield SampleHits(row["utid"], row["callsite_id"], 1, 1)
    yield from sample_hits(importer)
