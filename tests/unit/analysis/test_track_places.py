"""The place of a track: its process, its thread, and the tracks around it."""

from __future__ import annotations

from stretto.analysis.trace_tables import import_trace
from stretto.analysis.track_places import track_places
from stretto.protos.trace import (
    ProcessDescriptor,
    ThreadDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from stretto.protozero.wire import bytes_field

TRACKS = (
    TrackDescriptor(uuid=1, process=ProcessDescriptor(pid=7, process_name="shop.py")),
    TrackDescriptor(
        uuid=2, parent_uuid=1, thread=ThreadDescriptor(pid=7, tid=8, thread_name="worker")
    ),
    TrackDescriptor(uuid=3, parent_uuid=2, name="task"),
    TrackDescriptor(uuid=4, parent_uuid=3, name="request"),
    TrackDescriptor(uuid=5, name="machine"),
    TrackDescriptor(uuid=6, parent_uuid=1, name="queue"),
    TrackDescriptor(uuid=7, thread=ThreadDescriptor(pid=20, tid=21)),
)


def trace_with_an_instant_per_track() -> bytes:
    packets = [TracePacket(trusted_packet_sequence_id=2, sequence_flags=1)]
    packets += [TracePacket(track_descriptor=track) for track in TRACKS]
    packets += [
        TracePacket(
            timestamp=track.uuid,
            trusted_packet_sequence_id=2,
            track_event=TrackEvent(type=3, name="x", track_uuid=track.uuid),
        )
        for track in TRACKS
    ]
    return b"".join(bytes_field(1, packet.encode()) for packet in packets)


def test_place_has_the_process_the_thread_and_the_tracks_around() -> None:
    importer = import_trace(trace_with_an_instant_per_track())
    tracks = [row[2] for row in importer.slices_named("x")]
    places = track_places(importer, tracks)
    assert [places[track] for track in tracks] == [
        "shop.py 7",
        "shop.py 7 / worker 8",
        "shop.py 7 / worker 8 / task",
        "shop.py 7 / worker 8 / task / request",
        "machine",
        "shop.py 7 / queue",
        "process 20 / thread 21",
    ]
