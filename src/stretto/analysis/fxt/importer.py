"""Conversion of FXT to Perfetto's packets.

    records ──> names of kernel objects
            ──> events, sorted by time ──> points of flows, by their slice ─┐
                      └──────────────────────────────────────────────> packets

    duration begin, end, complete      BEGIN and END
    flow begin, step; flow end         flow_ids; terminating_flow_ids of the enclosing slice
    instant, counter                   INSTANT, COUNTER on a track for each argument
    async begin, instant, end          events on a track of the operation
    ChannelMessage, ChannelFlow        a message for `stretto flows`: see `channel_messages`
    blobs of Perfetto's packets        copied

Data larger than memory is sorted on disk. The times of all providers are used unchanged: the
providers share one clock.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt import records
from stretto.analysis.fxt.channel_messages import CATEGORY, MESSAGE, message_name
from stretto.analysis.fxt.enclosing import EnclosingSlices
from stretto.analysis.fxt.event_order import add_event
from stretto.analysis.fxt.nested_names import path_of
from stretto.analysis.fxt.outcome import Outcome
from stretto.analysis.fxt.packet_writer import PacketWriter
from stretto.analysis.fxt.record_reader import RecordReader
from stretto.analysis.fxt.thread_tracks import ThreadTracks
from stretto.analysis.spool import Spool
from stretto.analysis.track_events import BEGIN, END, INSTANT

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, Self

    Point = tuple[int, bool, str, str]

_COPY_BYTES = 1 << 20
_MAX_BLOBS = 64
_NUMBERS = frozenset((fxt.INT32, fxt.UINT32, fxt.INT64, fxt.UINT64, fxt.DOUBLE))
_KINDS = {
    fxt.DURATION_BEGIN: BEGIN,
    fxt.DURATION_END: END,
    fxt.INSTANT: INSTANT,
    fxt.ASYNC_BEGIN: BEGIN,
    fxt.ASYNC_END: END,
    fxt.ASYNC_INSTANT: INSTANT,
}


def import_fxt(file: BinaryIO, write: Callable[[bytes], object]) -> Outcome:
    """Convert an FXT trace to packets.

    Args:
        file: The trace.
        write: Called with each part of the packets.

    Returns:
        Counts of the packets that were written and of the records that were left out.

    Raises:
        DecodeError: The trace was written on a big-endian machine.
    """
    outcome = Outcome()
    tracks = ThreadTracks(packets := PacketWriter(write))
    with Spool() as events, Spool() as points, _Blobs(outcome) as blobs:
        _read(RecordReader(file), events, tracks, blobs, outcome)
        enclosing = EnclosingSlices(points, outcome)
        for position, ((timestamp, *_), entry) in enumerate(events):
            enclosing.add(position, timestamp, entry)
        enclosing.finish()
        tracks.describe_all()
        writing = _Writing(packets, tracks, outcome)
        joined = _Joined(points)
        for position, ((timestamp, *_), entry) in enumerate(events):
            writing.add(timestamp, entry, joined.at(position))
        blobs.write_all(write)
    outcome.leave_out("processes and threads without room for their names", tracks.refused)
    return outcome


def _read(
    reader: RecordReader, events: Spool, tracks: ThreadTracks, blobs: _Blobs, outcome: Outcome
) -> None:
    for record in reader:
        if isinstance(record, records.Event):
            if not add_event(events, _as_ours(record, reader.provider_name)):
                outcome.leave_out("events at impossible times")
        elif isinstance(record, records.KernelObject):
            tracks.add(record)
        elif isinstance(record, records.Blob):
            blobs.add(record)
        elif isinstance(record, records.ProviderEvent) and record.event == fxt.BUFFER_FILLED:
            outcome.leave_out("losses reported by providers with a full buffer")
    outcome.leave_out("damaged records", reader.damaged)
    outcome.leave_out("strings and providers without room in their tables", reader.refused)
    for kind, count in reader.skipped.items():
        outcome.leave_out(kind, count)


def _as_ours(event: records.Event, provider: str) -> records.Event:
    """Return the event as our exporter would have written it.

    In traces of our exporter, argument names are paths, and a null argument has no value. In traces
    of other programs an argument name is one part of a path. Their null arguments become the text
    "null".
    """
    if provider == fxt.OUR_PROVIDER or not event.arguments or event.type == fxt.COUNTER:
        return event
    arguments = (
        records.Argument(
            path_of(name), *((fxt.TEXT, "null") if kind == fxt.NULL else (kind, value))
        )
        for name, kind, value in event.arguments
    )
    return event._replace(arguments=tuple(arguments))


class _Blobs:
    """Blobs that hold Perfetto's packets, joined by name. They are written after all events."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._files: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, blob: records.Blob) -> None:
        """Store a part of a blob."""
        if blob.type != fxt.PERFETTO_BLOB:
            self._outcome.leave_out("blobs of other data")
            return
        if blob.name not in self._files:
            if len(self._files) == _MAX_BLOBS:
                self._outcome.leave_out(f"parts of blobs beyond {_MAX_BLOBS}")
                return
            self._files[blob.name] = tempfile.TemporaryFile(prefix="stretto-")  # noqa: SIM115
        self._files[blob.name].write(blob.data)

    def write_all(self, write: Callable[[bytes], object]) -> None:
        """Write the packets of all blobs."""
        for file in self._files.values():
            file.seek(0)
            while data := file.read(_COPY_BYTES):
                write(data)
            self._outcome.made["blob of packets"] += 1


class _Joined:
    """The flow points of each event. `at` must be called with ascending positions."""

    def __init__(self, points: Spool) -> None:
        self._points = iter(points)
        self._next = next(self._points, None)

    def at(self, position: int) -> list[Point]:
        """Return the points of the event at a position."""
        found: list[Point] = []
        while self._next is not None and self._next[0][0] == position:
            flow_id, ends, role, kind = self._next[1]
            found.append((flow_id, ends, role, kind))
            self._next = next(self._points, None)
        return found


class _Writing:
    """Writes the sorted events as packets."""

    def __init__(self, packets: PacketWriter, tracks: ThreadTracks, outcome: Outcome) -> None:
        self._packets = packets
        self._tracks = tracks
        self._outcome = outcome

    def add(self, timestamp: int, entry: tuple[Any, ...], points: list[Point]) -> None:
        """Write an event with its flow points. Flow records are ignored: `points` replaces them."""
        kind, process, thread, category, name, arguments, number = entry
        if kind == fxt.COUNTER:
            self._counter(timestamp, process, name, number, arguments)
            return
        if kind >= fxt.FLOW_BEGIN:
            return
        track = self._track(kind, process, thread, number, name)
        if not track:
            return
        if kind == fxt.DURATION_BEGIN and (category, name) == (CATEGORY, MESSAGE):
            name, arguments = _message(name, arguments, points)
        self._packets.event(
            _KINDS[kind],
            timestamp,
            track,
            category=category,
            name=name,
            arguments=arguments,
            flows=[(flow_id, ends) for flow_id, ends, *_ in points],
        )
        if _KINDS[kind] != END:
            self._outcome.made["slice" if _KINDS[kind] == BEGIN else "instant"] += 1
        if points:
            self._outcome.made["flow point"] += len(points)

    def _track(self, kind: int, process: int, thread: int, number: int, name: str) -> int:
        if kind >= fxt.ASYNC_BEGIN:
            track = self._tracks.operation(kind, process, number, name)
            if not track:
                self._outcome.leave_out("ends of operations without a known beginning")
            return track
        if self._tracks.knows(process, thread) or self._tracks.has_room():
            return self._tracks.thread(process, thread)
        self._outcome.leave_out("events of threads beyond the limit")
        return 0

    def _counter(
        self,
        timestamp: int,
        process: int,
        name: str,
        number: int,
        arguments: tuple[tuple[str, int, float], ...],
    ) -> None:
        for argument, kind, value in arguments:
            if kind not in _NUMBERS:
                self._outcome.leave_out("non-numeric arguments of counters")
                continue
            full = name if argument == "value" else f"{name}:{argument}"
            track = self._tracks.counter(process, full, number)
            if track:
                self._packets.counter(timestamp, track, value)
                self._outcome.made["counter value"] += 1
            else:
                self._outcome.leave_out("values of counters beyond the limit")


def _message(
    name: str, arguments: tuple[tuple[str, int, Any], ...], points: list[Point]
) -> tuple[str, tuple[tuple[str, int, Any], ...]]:
    """Return the name and the arguments of a channel's message."""
    method = message_name(arguments)
    if method is None:
        return name, arguments
    known = {argument[0] for argument in arguments}
    more = [("method", fxt.TEXT, method)]
    for _, _, role, kind in points:
        if role:
            more += [("role", fxt.TEXT, role), ("kind", fxt.TEXT, kind)]
            break
    return method, (*arguments, *(each for each in more if each[0] not in known))
