"""Reads the track events of a trace as plain Python values, without the trace processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import stretto
from stretto.client.recording import recording_config
from stretto.protos.config import TraceConfig
from stretto.protos.trace import DebugAnnotation, TracePacket, TrackDescriptor, TrackEvent
from stretto.testing.decoded_packets import decode_packets

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS_STATE = 1, 2
INCREMENTAL_CLOCK, BOOTTIME = 64, 6


class Event(NamedTuple):
    """One track event, with interned values resolved."""

    kind: int
    name: str
    category: str
    args: dict[str, Any]
    track: int
    timestamp: int
    flows: list[int]
    terminating_flows: list[int]
    value: int | float | None
    sequence: int


class _Sequence:
    """The incremental state of one packet sequence."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.categories: dict[int, str] = {}
        self.annotation_names: dict[int, str] = {}
        self.time = 0
        self.default_track = 0
        self.valid = False

    def update(self, packet: TracePacket) -> None:
        if packet.sequence_flags & CLEARED:
            self.__init__()  # type: ignore[misc]  # start anew
            self.valid = True
        if packet.has("trace_packet_defaults"):
            defaults = packet.trace_packet_defaults
            assert defaults is not None
            assert defaults.timestamp_clock_id == INCREMENTAL_CLOCK
            assert defaults.track_event_defaults is not None
            self.default_track = defaults.track_event_defaults.track_uuid
        if packet.has("clock_snapshot"):
            clocks = {clock.clock_id: clock for clock in packet.clock_snapshot.clocks}
            if INCREMENTAL_CLOCK in clocks:
                self.time = clocks[INCREMENTAL_CLOCK].timestamp
        if packet.has("interned_data"):
            data = packet.interned_data
            self.names.update((entry.iid, entry.name) for entry in data.event_names)
            self.categories.update((entry.iid, entry.name) for entry in data.event_categories)
            self.annotation_names.update(
                (entry.iid, entry.name) for entry in data.debug_annotation_names
            )

    def timestamp(self, packet: TracePacket) -> int:
        if packet.timestamp_clock_id == BOOTTIME:
            return packet.timestamp
        self.time += packet.timestamp
        return self.time

    def event(self, packet: TracePacket) -> Event:
        assert self.valid, "an event before its sequence's state"
        assert packet.sequence_flags & NEEDS_STATE
        event: TrackEvent = packet.track_event
        name = self.names[event.name_iid] if event.name_iid else event.name
        category = "".join(self.categories[iid] for iid in event.category_iids)
        value: int | float | None = None
        if event.has("counter_value"):
            value = event.counter_value
        elif event.has("double_counter_value"):
            value = event.double_counter_value
        return Event(
            event.type,
            name,
            category or "".join(event.categories),
            dict(self.annotation(each) for each in event.debug_annotations),
            event.track_uuid if event.has("track_uuid") else self.default_track,
            self.timestamp(packet),
            list(event.flow_ids),
            list(event.terminating_flow_ids),
            value,
            packet.trusted_packet_sequence_id,
        )

    def annotation(self, entry: DebugAnnotation) -> tuple[str, Any]:
        name = self.annotation_names[entry.name_iid] if entry.name_iid else entry.name
        return name, self.value(entry)

    def value(self, entry: DebugAnnotation) -> Any:
        if entry.dict_entries:
            return dict(self.annotation(each) for each in entry.dict_entries)
        if entry.array_values:
            return [self.value(each) for each in entry.array_values]
        for field in ("bool_value", "uint_value", "int_value", "double_value", "string_value"):
            if entry.has(field):
                return getattr(entry, field)
        return None


def events_of(trace: bytes) -> list[Event]:
    """Return all track events of a trace, in file order."""
    sequences: dict[int, _Sequence] = {}
    events = []
    for packet in decode_packets(trace):
        sequence = sequences.setdefault(packet.trusted_packet_sequence_id, _Sequence())
        sequence.update(packet)
        if packet.has("track_event"):
            events.append(sequence.event(packet))
        elif packet.has("timestamp") and not packet.timestamp_clock_id and sequence.valid:
            sequence.timestamp(packet)
    return events


def descriptors_of(trace: bytes) -> dict[int, TrackDescriptor]:
    """Return the last descriptor of each track, by uuid."""
    packets = (packet for packet in decode_packets(trace) if packet.has("track_descriptor"))
    return {packet.track_descriptor.uuid: packet.track_descriptor for packet in packets}


def config(*, enabled: list[str] | None = None, disabled: list[str] | None = None) -> TraceConfig:
    """Return a config for the given categories, by default all except slow and debug ones."""
    made = recording_config(buffer_bytes=8 << 20)
    track_event = made.data_sources[0].config.track_event_config
    if enabled is not None:
        track_event.enabled_categories = enabled
    if disabled is not None:
        track_event.disabled_categories = disabled
    return made


class Recorded:
    """The trace and the events of a `record` block, available when the block has ended."""

    def __init__(self) -> None:
        self.trace = b""

    @property
    def events(self) -> list[Event]:
        return events_of(self.trace)

    @property
    def event(self) -> Event:
        """The only event of the recording."""
        (event,) = self.events
        return event

    @property
    def kinds(self) -> str:
        """The kinds of all events: "BIE" for BEGIN, INSTANT and END."""
        return "".join("?BEIC"[event.kind] for event in self.events)

    def one(self, name: str) -> Event:
        """Return the only event with this name."""
        (event,) = [event for event in self.events if event.name == name]
        return event


@contextmanager
def record(
    *, enabled: list[str] | None = None, disabled: list[str] | None = None
) -> Iterator[Recorded]:
    """Record this process during the block."""
    recorded = Recorded()
    with stretto.TracingSession(config(enabled=enabled, disabled=disabled)) as session:
        yield recorded
        session.stop()
        recorded.trace = session.read()


def bodies(events: list[Event], role: str) -> dict[tuple[str, str], list[Any]]:
    """Return the recorded message bodies by (kind, method), in the order of their events."""
    found: dict[tuple[str, str], list[Any]] = {}
    for event in events:
        args = event.args
        if event.kind != END and args["role"] == role and "body" in args:
            found.setdefault((args["kind"], args["method"]), []).append(args["body"])
    return found
