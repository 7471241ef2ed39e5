"""The reader of track events returns the same events as a decoder of the whole trace."""

from __future__ import annotations

import io
import zlib

import pytest

import stretto
from stretto.analysis.track_events import COUNTER, Event, TrackEvents
from stretto.base.sync_marker import SYNC_MARKER
from stretto.protos.trace import (
    ClockSnapshot,
    DebugAnnotation,
    ProcessDescriptor,
    TracePacket,
    TracePacketDefaults,
    TrackDescriptor,
    TrackEvent,
)
from stretto.protozero.wire import bytes_field
from tests.support.recorded_events import events_of, record

category = stretto.Category("test.analysis")


def file_of(*packets: TracePacket) -> bytes:
    return b"".join(bytes_field(1, packet.encode()) for packet in packets)


def read(data: bytes) -> TrackEvents:
    return TrackEvents(io.BytesIO(data))


def arguments(event: Event) -> dict[str, object]:
    """Return the plain values among the annotations, and None for the others."""
    found: dict[str, object] = {}
    for data in event.annotations:
        entry = DebugAnnotation.decode(data)
        fields = ("string_value", "int_value", "uint_value", "double_value", "bool_value")
        values = [getattr(entry, field) for field in fields if entry.has(field)]
        found[event.names.get(entry.name_iid, entry.name)] = values[0] if values else None
    return found


@pytest.fixture(scope="module")
def trace() -> bytes:
    track = stretto.Track("a track")
    with record() as recorded:
        for number in range(300):
            with category.slice(f"slice {number % 7}", number=number, text="x", flow=number + 1):
                category.instant("at", timestamp=12345 + number, terminating_flow=[5, 6])
            category.counter("count", number)
            category.begin("on a track", track=track, ratio=0.5, yes=True, many=[1, 2])
            category.end(track=track)
    return recorded.trace


def test_all_events_of_a_recording_are_read(trace: bytes) -> None:
    events = read(trace)
    got = [
        (e.kind, e.name, e.track, e.timestamp, e.flows, arguments(e))
        for e in events
        if e.kind != COUNTER
    ]
    wanted = [
        (
            e.kind,
            e.name,
            e.track,
            e.timestamp,
            e.flows + e.terminating_flows,
            {name: None if isinstance(v, list) else v for name, v in e.args.items()},
        )
        for e in events_of(trace)
        if e.kind != COUNTER
    ]
    assert len(got) == 1500
    assert got == wanted
    assert (events.damaged, events.skipped) == (0, 0)
    assert "a track" in {track.name for track in events.tracks.values()}


def test_compressed_packets_are_read_once(trace: bytes) -> None:
    packed = file_of(TracePacket(compressed_packets=zlib.compress(trace)))
    assert len(list(read(packed))) == len(list(read(trace)))
    again = read(file_of(TracePacket(compressed_packets=zlib.compress(packed))))
    assert list(again) == []


@pytest.mark.parametrize("data", [b"no deflate", zlib.compress(bytes(3 << 20))])
def test_invalid_or_too_large_compressed_packets_are_counted_as_damage(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stretto.analysis.track_events._MAX_INFLATED_BYTES", 2 << 20)
    events = read(file_of(TracePacket(compressed_packets=data)))
    assert list(events) == []
    assert events.damaged == 1


def test_truncated_file_is_counted_as_damage(trace: bytes) -> None:
    events = read(trace[:-1])  # The trace ends within its last packet.
    assert 0 < len(list(events)) <= 1800
    assert events.damaged == 1


def test_reading_continues_after_the_next_sync_marker(trace: bytes) -> None:
    marked = file_of(TracePacket(synchronization_marker=SYNC_MARKER))
    events = read(b"\x0a\xff\xff\xff\xff\x7f" + marked + trace)
    assert len(list(events)) == 1800
    assert events.damaged == 1


def test_malformed_packet_is_skipped_and_counted(trace: bytes) -> None:
    torn = bytes_field(1, bytes_field(59, b"\x52\x7f"))
    events = read(torn + trace)
    assert len(list(events)) == 1800
    assert events.damaged == 1


def test_events_without_their_incremental_state_are_skipped() -> None:
    event = TrackEvent(type=3, name="lost")
    needy = TracePacket(
        timestamp=5, trusted_packet_sequence_id=2, sequence_flags=2, track_event=event
    )
    events = read(file_of(needy))
    assert list(events) == []
    assert events.skipped == 1


def test_timestamps_in_clocks_of_a_sequence_are_converted() -> None:
    clocks = [
        ClockSnapshot.Clock(clock_id=6, timestamp=1_000_000),
        ClockSnapshot.Clock(
            clock_id=64, timestamp=500, unit_multiplier_ns=1000, is_incremental=True
        ),
        ClockSnapshot.Clock(clock_id=65, timestamp=900_000),
    ]
    defaults = TracePacketDefaults(timestamp_clock_id=64)
    first = TracePacket(
        trusted_packet_sequence_id=2,
        sequence_flags=1,
        clock_snapshot=ClockSnapshot(clocks=clocks),
        trace_packet_defaults=defaults,
    )

    def at(timestamp: int, clock_id: int = 0) -> TracePacket:
        packet = TracePacket(
            timestamp=timestamp,
            trusted_packet_sequence_id=2,
            sequence_flags=2,
            track_event=TrackEvent(type=3, name="x", track_uuid=9),
        )
        if clock_id:
            packet.timestamp_clock_id = clock_id
        return packet

    trace = file_of(first, at(1), at(2), at(900_010, 65), at(3), at(77, 6))
    times = [event.timestamp for event in read(trace)]
    assert times == [1_001_000, 1_003_000, 1_000_010, 1_006_000, 77]


def test_timestamps_in_clocks_of_the_machine_are_converted() -> None:
    clock = ClockSnapshot.Clock
    offsets = ClockSnapshot(
        clocks=[clock(clock_id=6, timestamp=1000), clock(clock_id=3, timestamp=400)]
    )
    mine = ClockSnapshot(
        clocks=[
            clock(clock_id=64, timestamp=1, unit_multiplier_ns=1000, is_incremental=True),
            clock(clock_id=3, timestamp=500),
        ]
    )

    def at(time: int, clock_id: int) -> TracePacket:
        return TracePacket(
            timestamp=time,
            timestamp_clock_id=clock_id,
            trusted_packet_sequence_id=2,
            track_event=TrackEvent(type=3, name="x", track_uuid=9),
        )

    trace = file_of(
        at(5, 3),
        TracePacket(clock_snapshot=offsets, trusted_packet_sequence_id=1),
        TracePacket(clock_snapshot=mine, trusted_packet_sequence_id=2, sequence_flags=1),
        at(400, 3),
        at(1, 64),
        at(7, 6),
    )
    assert [event.timestamp for event in read(trace)] == [5, 1000, 2100, 7]


def test_process_keeps_its_name_if_a_later_descriptor_has_none() -> None:
    named = ProcessDescriptor(pid=7, process_name="shop.py")
    packets = (
        TracePacket(track_descriptor=TrackDescriptor(uuid=1, process=process))
        for process in (named, ProcessDescriptor(pid=7))
    )
    events = read(file_of(*packets))
    assert list(events) == []
    assert events.tracks[1].process == named
