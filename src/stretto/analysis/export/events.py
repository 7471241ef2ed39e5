"""Writes events: Chrome's JSON, and JSON lines with all names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stretto.analysis.export.lanes import read_arguments, read_lanes
from stretto.analysis.table_rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto import _native
    from stretto.analysis.export.lanes import Lane, Slice


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def chrome(importer: _native.TraceImporter) -> Iterator[str]:
    """Give Chrome's JSON: slices as complete events, instants, counters, and names.

    A lane that is no thread becomes a thread of its process, with a number of its own: the complete
    events of a thread may not overlap, so its other tracks are such lanes, too.
    """
    yield '{"traceEvents":[\n'
    separator = ""
    for event in _chrome_events(importer):
        yield separator + _text(event)
        separator = ",\n"
    yield '\n],"displayTimeUnit":"ns"}\n'


def _chrome_events(importer: _native.TraceImporter) -> Iterator[dict[str, Any]]:
    arguments = read_arguments(importer)
    named: set[int] = set()
    threads: set[tuple[int, int]] = set()
    for number, lane in enumerate(read_lanes(importer)):
        tid = (1 << 30) + number  # No thread of Linux has such a number.
        if lane.is_thread and (lane.pid, lane.tid) not in threads:
            tid = lane.tid
            threads.add((lane.pid, tid))
        if lane.process and lane.pid not in named:
            named.add(lane.pid)
            yield _name("process_name", lane.pid, 0, lane.process)
        yield _name("thread_name", lane.pid, tid, lane.name)
        for each in lane.slices:
            yield _chrome_slice(each, lane.pid, tid, arguments)
    yield from _chrome_counters(importer)


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _chrome_slice(
    each: Slice, pid: int, tid: int, arguments: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    event: dict[str, Any] = {
        "ph": "X" if each.end > each.start else "i",
        "name": each.name,
        "cat": each.category,
        "pid": pid,
        "tid": tid,
        "ts": each.start / 1000,
    }
    if each.end > each.start:
        event["dur"] = (each.end - each.start) / 1000
    else:
        event["s"] = "t"
    if each.arguments is not None and each.arguments in arguments:
        given = arguments[each.arguments]
        event["args"] = {_short(key): value for key, value in given.items()}
    return event


def _short(key: str) -> str:
    return key.removeprefix("debug.").removeprefix("args.")


def read_counters(importer: _native.TraceImporter) -> Iterator[tuple[int, str, int, float]]:
    """Give the time, name, process id and value of each counter's sample."""
    threads = {row["utid"]: row["upid"] for row in rows_of(importer, "thread")}
    pids = {row["upid"]: row["pid"] for row in rows_of(importer, "process")}
    tracks = {row["id"]: row for row in rows_of(importer, "__intrinsic_track")}
    for row in rows_of(importer, "counter"):
        track = tracks[row["track_id"]]
        upid = track["upid"] if track["upid"] is not None else threads.get(track["utid"])
        yield row["ts"], track["name"] or "counter", pids.get(upid) or 0, row["value"]


def _chrome_counters(importer: _native.TraceImporter) -> Iterator[dict[str, Any]]:
    for time, name, pid, value in read_counters(importer):
        yield {
            "ph": "C", "name": name, "pid": pid, "ts": time / 1000, "args": {"value": value},
        }  # fmt: skip


def json_lines(importer: _native.TraceImporter) -> Iterator[str]:
    """Give one JSON object per slice and counter value, with all names; times are ns."""
    arguments = read_arguments(importer)
    for lane in read_lanes(importer):
        for each in lane.slices:
            yield _text(_line(each, lane, arguments)) + "\n"
    for time, name, pid, value in read_counters(importer):
        yield (
            _text({"type": "counter", "ts": time, "name": name, "pid": pid, "value": value}) + "\n"
        )


def _line(each: Slice, lane: Lane, arguments: dict[int, dict[str, Any]]) -> dict[str, Any]:
    given = arguments.get(-1 if each.arguments is None else each.arguments, {})
    return {
        "type": "slice",
        "ts": each.start,
        "dur": each.end - each.start,
        "name": each.name,
        "category": each.category,
        "depth": each.depth,
        "lane": lane.name,
        "process": lane.process,
        "pid": lane.pid,
        "tid": lane.tid,
        "args": {_short(key): value for key, value in given.items()},
    }
