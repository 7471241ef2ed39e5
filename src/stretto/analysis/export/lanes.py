"""The slices of a trace by lane: a thread, or another track."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from stretto.analysis.table_rows import rows_of

if TYPE_CHECKING:
    from stretto import _native


class Slice(NamedTuple):
    """A slice. `end` is the end of the trace if it isn't finished."""

    start: int
    end: int
    name: str
    category: str
    depth: int
    arguments: int | None
    """The set of its arguments."""


@dataclass
class Lane:
    """A thread, or another track, and its slices in the order of their start.

    Attributes:
        tid: The thread of the lane; 0 if it has none.
        is_thread: Whether the lane is all that the thread does, not one of its other tracks.
    """

    name: str
    process: str
    pid: int
    tid: int
    is_thread: bool
    slices: list[Slice] = field(default_factory=list)


def read_lanes(importer: _native.TraceImporter) -> list[Lane]:
    """Return the lanes that have slices, in the order of their first slice."""
    threads = {row["utid"]: row for row in rows_of(importer, "thread")}
    processes = {row["upid"]: row for row in rows_of(importer, "process")}
    tracks = {row["id"]: row for row in rows_of(importer, "__intrinsic_track")}
    lanes: dict[int, Lane] = {}
    found = list(rows_of(importer, "slice"))
    last = max((row["ts"] + max(row["dur"], 0) for row in found), default=0)
    for row in found:
        lane = lanes.get(row["track_id"])
        if lane is None:
            lane = lanes[row["track_id"]] = _lane(tracks[row["track_id"]], threads, processes)
        end = last if row["dur"] < 0 else row["ts"] + row["dur"]
        lane.slices.append(
            Slice(
                row["ts"],
                end,
                row["name"] or "[no name]",
                row["category"] or "",
                row["depth"],
                row["arg_set_id"],
            )
        )
    return list(lanes.values())


def _lane(
    track: dict[str, Any], threads: dict[Any, dict[str, Any]], processes: dict[Any, dict[str, Any]]
) -> Lane:
    thread = threads.get(track["utid"], {})
    upid = track["upid"] if track["upid"] is not None else thread.get("upid")
    process = processes.get(upid, {})
    tid = thread.get("tid") or 0
    name = track["name"] or thread.get("name") or (f"thread {tid}" if thread else "track")
    is_thread = bool(tid) and track["parent_id"] is None and not track["name"]
    return Lane(name, process.get("name") or "", process.get("pid") or 0, tid, is_thread)


def read_arguments(importer: _native.TraceImporter) -> dict[int, dict[str, Any]]:
    """Return the arguments of each set, by key."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows_of(importer, "__intrinsic_args"):
        values = (row["int_value"], row["string_value"], row["real_value"])
        value = next((each for each in values if each is not None), None)
        if row["value_type"] == "bool":
            value = bool(value)
        found.setdefault(row["arg_set_id"], {})[row["key"]] = value
    return found
