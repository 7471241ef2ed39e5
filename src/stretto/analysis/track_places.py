"""Where the tracks of an imported trace are: `shop.py 4711 / worker 4712 / request`.

A place has the process with its pid, the thread with its tid, and the names of the tracks around
the track and of itself, as far as the trace has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.analysis.trace_tables import table_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto import _native

    Rows = list[dict[str, Any]]


def track_places(importer: _native.TraceImporter, ids: Iterable[int]) -> dict[int, str]:
    """Return the places of tracks, by the tracks' ids; "" if nothing is known of a track."""
    tracks, threads, processes = (
        table_rows(importer, table) for table in ("__intrinsic_track", "thread", "process")
    )
    return {
        track: " / ".join([*_owner(tracks[track], threads, processes), *_names(tracks, track)])
        for track in ids
    }


def _owner(track: dict[str, Any], threads: Rows, processes: Rows) -> list[str]:
    """Return the process and the thread of a track."""
    names = []
    upid = track["upid"]
    if track["utid"] is not None:
        thread = threads[track["utid"]]
        upid = thread["upid"]
        names.append(f"{thread['name'] or 'thread'} {thread['tid']}")
    if upid is not None:
        process = processes[upid]
        names.insert(0, f"{process['name'] or 'process'} {process['pid']}")
    return names


def _names(tracks: Rows, track: int | None) -> list[str]:
    """Return the names of a track and of those around it, the outermost first."""
    names = []
    while track is not None:
        names.append(tracks[track]["name"])
        track = tracks[track]["parent_id"]
    return [name for name in reversed(names) if name]
