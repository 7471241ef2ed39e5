"""Conversion of Chrome's JSON to Perfetto's packets.

    JSON ──> importer: tables ──> descriptors of processes, threads, tracks
                            ├───> per track: BEGIN, END, INSTANT with arguments
                            ├───> counters
                            └───> a flow id per arrow, at both of its slices

So the packets have the slices that a reader of the JSON finds: incomplete and overlapping events
are already resolved. Each track of the JSON stays a track of its own.

Left out, and counted: CPU times of slices, and events that can't be read. The tables are in memory,
about as large as the file.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from stretto.analysis.empty_trace import EmptyTraceError, has_nothing
from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.outcome import Outcome
from stretto.analysis.fxt.packet_writer import PacketWriter
from stretto.analysis.missing import MISSING
from stretto.analysis.table_rows import rows_of
from stretto.analysis.track_events import BEGIN, END, INSTANT
from stretto.base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO

    Row = dict[str, Any]
    Argument = tuple[str, int, float | str | None]

_READ_BYTES = 1 << 20
_UNFINISHED = -1
"""The duration of a slice that has no end."""
_EVENTS = b'"traceEvents"'
_PROCESS, _THREAD, _TRACK = 1 << 32, 2 << 32, 3 << 32
"""The uuids of tracks are these plus upid, utid and the number of the track."""
_OWN_TRACKS = {
    "thread_execution": (_THREAD, "utid"),
    "chrome_process_instant": (_PROCESS, "upid"),
}
"""Tracks that the descriptor of their thread or process describes, by their type."""
_TYPES = {
    "int": fxt.INT64,
    "uint": fxt.UINT64,
    "real": fxt.DOUBLE,
    "bool": fxt.BOOL,
    "pointer": fxt.POINTER,
}


def import_chrome(file: BinaryIO, write: Callable[[bytes], object]) -> Outcome:
    """Convert Chrome's JSON to packets.

    Args:
        file: The trace.
        write: Called with each part of the packets.

    Returns:
        Counts of what was written and of what was left out.

    Raises:
        ConfigError: It is an object without `traceEvents`.
        EmptyTraceError: It has no event.
    """
    from stretto.analysis.native import TraceImporter  # Other conversions work without it.

    importer = TraceImporter(lambda data: data)
    has_events = _feed(importer, file)
    importer.finish()
    if not has_events:
        raise ConfigError(
            'this is no trace: JSON begins with {"packet":[ or with [, or is an object with '
            '"traceEvents"'
        )
    if has_nothing(importer):
        raise EmptyTraceError
    return _Conversion(importer, write).run()


def _feed(importer: Any, file: BinaryIO) -> bool:
    """Feed a file to the importer; return whether it is an array, or has the member of events."""
    has_events, before = False, b""
    while piece := file.read(_READ_BYTES):
        importer.feed(piece)
        is_array = not before and piece.lstrip().startswith(b"[")
        has_events = has_events or is_array or _EVENTS in before + piece
        before = (before + piece[-len(_EVENTS) :])[-len(_EVENTS) :]
    return has_events


class _Conversion:
    """One conversion, with the tables that are read more than once."""

    def __init__(self, importer: Any, write: Callable[[bytes], object]) -> None:
        self._importer = importer
        self._packets = PacketWriter(write)
        self._outcome = Outcome()
        self._tracks = list(rows_of(importer, "__intrinsic_track"))
        self._arguments = _argument_sets(importer)
        self._flows: defaultdict[int, list[int]] = defaultdict(list)
        for row in rows_of(importer, "flow"):
            for end in ("slice_out", "slice_in"):
                self._flows[row[end]].append(row["id"] + 1)

    def run(self) -> Outcome:
        """Write all packets."""
        self._describe_threads()
        self._describe_tracks()
        slices: defaultdict[int, list[Row]] = defaultdict(list)
        for row in rows_of(self._importer, "slice"):
            slices[row["track_id"]].append(row)
        for track, rows in slices.items():
            self._write_slices(self._uuid(self._tracks[track]), rows)
        for row in rows_of(self._importer, "counter"):
            self._packets.counter(row["ts"], _TRACK + row["track_id"], row["value"])
            self._outcome.made["counter value"] += 1
        for row in rows_of(self._importer, "stats"):
            if row["name"] in MISSING:
                self._outcome.leave_out(MISSING[row["name"]], row["value"])
        return self._outcome

    def _describe_threads(self) -> None:
        pids = {}
        for row in rows_of(self._importer, "process"):
            pids[row["upid"]] = row["pid"]
            self._packets.process(_PROCESS + row["upid"], row["pid"], row["name"] or "")
        for row in rows_of(self._importer, "thread"):
            if (upid := row["upid"]) is not None:
                self._packets.thread(
                    _THREAD + row["utid"], _PROCESS + upid, pids[upid], row["tid"],
                    row["name"] or "",
                )  # fmt: skip

    def _describe_tracks(self) -> None:
        for row in self._tracks:
            if row["type"] not in _OWN_TRACKS:
                parent = 0
                if row["utid"] is not None:
                    parent = _THREAD + row["utid"]
                elif row["upid"] is not None:
                    parent = _PROCESS + row["upid"]
                self._packets.track(
                    _TRACK + row["id"], parent, row["name"],
                    counter=row["event_type"] == "counter", separate=True,
                )  # fmt: skip

    def _uuid(self, track: Row) -> int:
        base, key = _OWN_TRACKS.get(track["type"], (_TRACK, "id"))
        return base + int(track[key])

    def _write_slices(self, track: int, rows: list[Row]) -> None:
        """Write the slices of a track, in the order in which they begin and end."""
        ends: list[int | None] = []
        """The ends of the open slices, the outermost first; None of unfinished ones."""
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            self._end(track, ends, row["depth"])
            if row["dur"] < _UNFINISHED:
                self._outcome.leave_out("negative durations of slices")
                row = {**row, "dur": 0}  # noqa: PLW2901
            is_parent = after is not None and after["depth"] > row["depth"]
            if row["dur"] or is_parent:
                ends.append(self._end_of(row, ends[-1] if ends else None))
            self._begin(BEGIN if row["dur"] or is_parent else INSTANT, track, row)
        self._end(track, ends, 0)

    def _end_of(self, row: Row, around: int | None) -> int | None:
        """Return where a slice ends: with the slice around it at the latest."""
        end = row["ts"] + row["dur"] if row["dur"] >= 0 else None
        if around is None or (end is not None and end <= around):
            return end
        self._outcome.leave_out("ends of slices after the slice around them")
        return around

    def _end(self, track: int, ends: list[int | None], depth: int) -> None:
        while len(ends) > depth:
            if (end := ends.pop()) is not None:
                self._packets.event(END, end, track)

    def _begin(self, kind: int, track: int, row: Row) -> None:
        self._packets.event(
            kind,
            row["ts"],
            track,
            category=row["category"] or "",
            name=row["name"],
            arguments=self._arguments.get(row["arg_set_id"], ()),
            flows=[(flow, False) for flow in self._flows.get(row["id"], ())],
        )
        self._outcome.made["instant" if kind == INSTANT else "slice"] += 1
        self._outcome.leave_out("CPU times of slices", row["thread_dur"] is not None)


def _argument_sets(importer: Any) -> dict[int | None, Iterable[Argument]]:
    found: defaultdict[int | None, list[Argument]] = defaultdict(list)
    for row in rows_of(importer, "__intrinsic_args"):
        kind = _TYPES.get(row["value_type"], fxt.TEXT)
        column = {fxt.TEXT: "string_value", fxt.DOUBLE: "real_value"}.get(kind, "int_value")
        value = row[column]
        if kind == fxt.UINT64 and value < 0:
            value += 1 << 64
        found[row["arg_set_id"]].append((row["key"].removeprefix("args."), kind, value))
    return dict(found)
