"""The UI opens the lanes of the program when it opens a trace."""

from __future__ import annotations

import json
import re
import zlib

from stretto.protos.trace import (
    ProcessDescriptor,
    ThreadDescriptor,
    Trace,
    TracePacket,
    TrackDescriptor,
)
from stretto.viewer.first_view import startup_commands


def packet(**descriptor: object) -> TracePacket:
    return TracePacket(track_descriptor=TrackDescriptor(**descriptor))  # type: ignore[arg-type]


def test_tracks_of_the_first_process_are_expanded() -> None:
    trace = Trace(
        packet=[
            packet(uuid=1, thread=ThreadDescriptor(pid=17, tid=18)),
            packet(uuid=2, process=ProcessDescriptor(pid=17)),
            packet(uuid=3, process=ProcessDescriptor(pid=19)),
        ]
    ).encode()
    packed = TracePacket(compressed_packets=zlib.compress(trace))
    compressed = Trace(packet=[packed]).encode()
    for start in (trace, trace[:-1], compressed):
        (command,) = json.loads(startup_commands(start))
        assert command["id"] == "dev.perfetto.ExpandTracksByRegex"
        (pattern,) = command["args"]
        opened = ["shop.py 17", "MainThread 17", "asyncio tasks", "trio tasks"]
        closed = ["shop.py 170", "17 tasks", "my asyncio tasks"]
        assert [name for name in opened + closed if re.search(pattern, name)] == opened


def test_trace_without_a_process_has_no_startup_commands() -> None:
    assert startup_commands(b"") == ""
    assert startup_commands(b'{"traceEvents": []}') == ""
    assert startup_commands(Trace(packet=[packet(uuid=1)]).encode()) == ""


def test_damaged_compressed_packet_has_no_startup_commands() -> None:
    assert startup_commands(Trace(packet=[TracePacket(compressed_packets=b"x")]).encode()) == ""
