"""The track events of a trace in the order of the file, with interned data resolved.

    packets -> per sequence: names, defaults, clock -> Event

Times are converted to BOOTTIME nanoseconds by the clock snapshot before the event. Damaged packets,
and packets that need a lost incremental state, are counted and left out. Values of annotations are
decoded on request.

Source: docs/formats/track_events.md, "Fields".
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from stretto.base.errors import DecodeError
from stretto.base.sync_marker import SYNC_MARKER
from stretto.protos import trace
from stretto.protozero.selector import select
from stretto.protozero.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
BOOTTIME = 6

_CLEARED, _NEEDS_STATE = 1, 2
_FIRST_LOCAL_CLOCK, _LAST_LOCAL_CLOCK = 64, 127
_MAX_SNAPSHOTS = 1 << 16
_READ_BYTES = 4 << 20
_MAX_INFLATED_BYTES = 256 << 20

_FIELDS = (
    "timestamp",
    "timestamp_clock_id",
    "sequence_flags",
    "trusted_packet_sequence_id",
    "trace_packet_defaults",
    "clock_snapshot",
    "interned_data",
    "track_descriptor",
    "compressed_packets",
    "track_event.type",
    "track_event.track_uuid",
    "track_event.name_iid",
    "track_event.name",
    "track_event.debug_annotations",
    "track_event.flow_ids",
    "track_event.terminating_flow_ids",
    "track_event.categories",
    "track_event.category_iids",
    "track_event.counter_value",
    "track_event.double_counter_value",
)
_OTHERS = (
    "android_log",
    "chrome_events",
    "ftrace_events",
    "gpu_counter_event",
    "journald_event",
    "perf_sample",
    "process_stats",
    "process_tree",
    "profile_packet",
    "stack_sample",
    "streaming_profile_packet",
    "sys_stats",
    "track_event.extra_counter_values",
    "track_event.extra_double_counter_values",
    "track_event.legacy_event",
    "track_event.thread_instruction_count_absolute",
    "track_event.thread_instruction_count_delta",
    "track_event.thread_time_absolute_us",
    "track_event.thread_time_delta_us",
)
"""Fields of packets with other data than events."""
_packet = select(trace.TracePacket, *_FIELDS)
_packet_and_others = select(trace.TracePacket, *_FIELDS, *_OTHERS)


class Event(NamedTuple):
    """One track event."""

    kind: int
    name: str
    track: int
    timestamp: int
    flows: list[int]
    """Ids of the flows that go through the event, then of those that end at it."""
    annotations: list[bytes]
    names: dict[int, str]
    """Current names of interned annotations: use them before the next event is read."""
    texts: dict[int, str]
    """Current values of interned annotations."""
    categories: list[str]
    ending: list[int]
    """The flows among `flows` that end at the event."""
    value: int | float | None
    """The value of a counter."""


class _MachineClocks:
    """Conversion of the machine's clocks to BOOTTIME, by clock snapshots."""

    def __init__(self) -> None:
        self._snapshots: dict[int, tuple[list[int], list[int]]] = {}

    def __contains__(self, clock_id: int) -> bool:
        return clock_id == BOOTTIME or clock_id in self._snapshots

    def add(self, clock_id: int, timestamp: int, boottime: int) -> None:
        """Add a clock's value from a snapshot."""
        times, offsets = self._snapshots.setdefault(clock_id, ([], []))
        if len(times) < _MAX_SNAPSHOTS:
            at = bisect_right(times, timestamp)
            times.insert(at, timestamp)
            offsets.insert(at, boottime - timestamp)

    def boottime(self, clock_id: int, timestamp: int) -> int:
        """Convert a time to BOOTTIME by the last clock snapshot; no change without a snapshot."""
        if clock_id not in self._snapshots:
            return timestamp
        times, offsets = self._snapshots[clock_id]
        return timestamp + offsets[max(bisect_right(times, timestamp) - 1, 0)]


class _Clock:
    """A clock of a sequence, defined by a snapshot."""

    __slots__ = ("base", "incremental", "last", "machine", "multiplier")

    def __init__(
        self, value: int, *, multiplier: int, incremental: bool, base: int, machine: int
    ) -> None:
        self.multiplier = multiplier
        self.incremental = incremental
        self.last = value * multiplier
        self.base = base
        """The offset from this clock to the clock `machine`, in nanoseconds."""
        self.machine = machine

    def machine_time(self, timestamp: int) -> int:
        value = timestamp * self.multiplier
        if self.incremental:
            value = self.last = self.last + value
        return value + self.base


class _Sequence:
    """The incremental state of one sequence."""

    __slots__ = (
        "annotation_names",
        "annotation_texts",
        "categories",
        "clock_id",
        "clocks",
        "event_names",
        "track",
        "valid",
    )

    def __init__(self, *, valid: bool = False) -> None:
        self.event_names: dict[int, str] = {}
        self.categories: dict[int, str] = {}
        self.annotation_names: dict[int, str] = {}
        self.annotation_texts: dict[int, str] = {}
        self.clocks: dict[int, _Clock] = {}
        self.clock_id = 0
        self.track = 0
        self.valid = valid

    def add_defaults(self, data: bytes) -> None:
        defaults = trace.TracePacketDefaults.decode(data)
        self.clock_id = defaults.timestamp_clock_id
        events = defaults.track_event_defaults
        self.track = events.track_uuid if events is not None else 0

    def add_names(self, data: bytes) -> None:
        interned = trace.InternedData.decode(data)
        self.event_names.update((each.iid, each.name) for each in interned.event_names)
        self.categories.update((each.iid, each.name) for each in interned.event_categories)
        self.annotation_names.update(
            (each.iid, each.name) for each in interned.debug_annotation_names
        )
        self.annotation_texts.update(
            (each.iid, bytes(each.str).decode(errors="replace"))
            for each in interned.debug_annotation_string_values
        )

    def add_clocks(self, data: bytes, machine: _MachineClocks) -> None:
        """Add a clock snapshot, of both the sequence's own clocks and the machine's clocks."""
        clocks = {clock.clock_id: clock for clock in trace.ClockSnapshot.decode(data).clocks}
        if BOOTTIME in clocks:
            for clock_id, clock in clocks.items():
                if clock_id < BOOTTIME:
                    machine.add(clock_id, clock.timestamp, clocks[BOOTTIME].timestamp)
        known = [clock_id for clock_id in clocks if clock_id in machine]
        chosen = max(known, default=0)
        for clock_id, clock in clocks.items():
            if _FIRST_LOCAL_CLOCK <= clock_id <= _LAST_LOCAL_CLOCK:
                multiplier = clock.unit_multiplier_ns or 1
                value = clock.timestamp
                base = clocks[chosen].timestamp - value * multiplier if chosen else 0
                self.clocks[clock_id] = _Clock(
                    value,
                    multiplier=multiplier,
                    incremental=clock.is_incremental,
                    base=base,
                    machine=chosen,
                )

    def boottime(self, timestamp: int, clock_id: int | None, machine: _MachineClocks) -> int:
        """Convert a time of one of the sequence's or the machine's clocks to BOOTTIME."""
        clock_id = clock_id or self.clock_id
        clock = self.clocks.get(clock_id)
        if clock is None:
            return machine.boottime(clock_id, timestamp)
        return machine.boottime(clock.machine, clock.machine_time(timestamp))


def _process_name(track: trace.TrackDescriptor | None) -> str:
    process = None if track is None else track.process
    return "" if process is None else process.process_name


class TrackEvents:
    """An iterable over the track events of a trace, for one iteration.

    Args:
        file: The trace, opened for reading bytes.
        count_others: Whether to count packets with other data in `others`; this takes more time.

    Attributes:
        others: The number of packets with other data, by the names of their fields.
        skipped: The number of events left out because their incremental state was lost.
        damaged: The number of unreadable packets and file areas.
        tracks: The latest track descriptors by uuid.
    """

    def __init__(self, file: BinaryIO, *, count_others: bool = False) -> None:
        self._file = file
        self._select = _packet_and_others if count_others else _packet
        self.others: Counter[str] = Counter()
        self._sequences: dict[int, _Sequence] = {}
        self._machine = _MachineClocks()
        self.skipped = 0
        self.damaged = 0
        self.tracks: dict[int, trace.TrackDescriptor] = {}

    def __iter__(self) -> Iterator[Event]:
        """Iterate over the events."""
        tokens: Tokenizer[tuple[Any, ...]] = Tokenizer(self._select, SYNC_MARKER)
        while piece := self._file.read(_READ_BYTES):
            yield from self._events(tokens.append(piece), packed=True)
        yield from self._events(tokens.end(), packed=True)
        self.damaged += tokens.errors

    def _events(self, rows: Iterator[tuple[Any, ...]], *, packed: bool) -> Iterator[Event]:
        """Convert rows to events. Compressed packets inside of compressed packets are not read."""
        for row in self._readable(rows):
            event = None
            try:
                if row[8] is not None and packed:
                    inner: Tokenizer[tuple[Any, ...]] = Tokenizer(self._select)
                    yield from self._events(inner.append(inflated(row[8])), packed=False)
                    self.damaged += inner.errors
                    continue
                event = self._event(row)
            except DecodeError:
                self.damaged += 1
            if event is not None:
                yield event

    def _readable(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Skip and count damaged packets."""
        while True:
            try:
                yield from rows
            except DecodeError:
                self.damaged += 1
            else:
                return

    def _event(self, row: tuple[Any, ...]) -> Event | None:
        timestamp, clock_id, flags, sequence_id, defaults, snapshot, names, track = row[:8]
        kind, track_uuid, name_iid, name, annotations, flows, ending = row[9:16]
        categories, category_iids, count, ratio, *others = row[16:]
        if others:
            self.others.update(
                name
                for name, there in zip(_OTHERS, others, strict=True)
                if there is not None and there != []
            )
        sequence = self._sequences.get(sequence_id)
        if sequence is None or (flags or 0) & _CLEARED:
            sequence = _Sequence(valid=bool((flags or 0) & _CLEARED))
            self._sequences[sequence_id] = sequence
        if defaults is not None:
            sequence.add_defaults(defaults)
        if snapshot is not None:
            sequence.add_clocks(snapshot, self._machine)
        if names is not None:
            sequence.add_names(names)
        if track is not None:
            descriptor = trace.TrackDescriptor.decode(track)
            # Other processes, such as the recorder, describe a process by its pid alone.
            if _process_name(descriptor) or not _process_name(self.tracks.get(descriptor.uuid)):
                self.tracks[descriptor.uuid] = descriptor
        # The time is converted even if unused: an incremental clock advances per packet.
        time = 0 if timestamp is None else sequence.boottime(timestamp, clock_id, self._machine)
        if kind is None:
            return None
        if (flags or 0) & _NEEDS_STATE and not sequence.valid:
            self.skipped += 1
            return None
        return Event(
            kind,
            sequence.event_names.get(name_iid, "") if name_iid else name or "",
            sequence.track if track_uuid is None else track_uuid,
            time,
            [*(flows or ()), *(ending or ())],
            annotations or [],
            sequence.annotation_names,
            sequence.annotation_texts,
            [
                *(categories or ()),
                *(sequence.categories.get(iid, "") for iid in category_iids or ()),
            ],
            ending or [],
            count if ratio is None else ratio,
        )


def inflated(data: bytes) -> bytes:
    """Decompress compressed packets.

    Raises:
        DecodeError: The data isn't in deflate format, or the decompressed data is too large.
    """
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data, _MAX_INFLATED_BYTES)
    except zlib.error as error:
        raise DecodeError(f"packets that should be compressed by deflate: {error}") from error
    if inflater.unconsumed_tail:
        raise DecodeError(f"compressed packets of more than {_MAX_INFLATED_BYTES} bytes")
    return text
