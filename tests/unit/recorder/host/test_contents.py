from __future__ import annotations

import os
import zlib

import pytest

from stretto.protos.trace import (
    ProcessDescriptor,
    ThreadDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from stretto.protozero import wire
from stretto.recorder.host import packet_file as module
from stretto.recorder.host.contents import Contents
from stretto.service.output.packet_encoder import framed

EVENT = framed(TracePacket(timestamp=1, track_event=TrackEvent(name="x")).encode())
PROCESS = framed(
    TracePacket(track_descriptor=TrackDescriptor(uuid=1, process=ProcessDescriptor(pid=7))).encode()
)
THREAD = framed(
    TracePacket(
        track_descriptor=TrackDescriptor(uuid=2, thread=ThreadDescriptor(pid=7, tid=8))
    ).encode()
)


def test_whole_packets_are_counted():
    contents = Contents()
    whole = EVENT * 3 + PROCESS * 2 + THREAD
    assert contents.add(whole + EVENT[:-1]) == len(whole)
    assert contents.add(EVENT + THREAD) == len(EVENT + THREAD)
    assert contents.events == 4
    assert contents.processes == {7}
    assert contents.threads == {(7, 8)}


def test_process_that_only_its_threads_name_is_counted():
    contents = Contents()
    contents.add(THREAD + EVENT)
    assert contents.processes == {7}


def test_damaged_descriptor_is_passed_over():
    contents = Contents()
    damaged = framed(wire.bytes_field(60, b"\x0e"))
    assert contents.add(damaged + THREAD + EVENT) == len(damaged + THREAD + EVENT)
    assert contents.threads == {(7, 8)}
    assert contents.events == 1


@pytest.mark.parametrize(("inflate", "events"), [(True, 3), (False, 1)])
def test_compressed_packets_are_counted_unless_they_are_left_out(inflate, events):
    contents = Contents()
    packed = framed(TracePacket(compressed_packets=zlib.compress(EVENT * 2 + THREAD)).encode())
    contents.add(packed + EVENT, inflate=inflate)
    assert contents.events == events
    assert bool(contents.threads) == inflate


def count_file(tmp_path, data: bytes) -> Contents:
    path = tmp_path / "trace"
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        contents = Contents()
        contents.add_file(fd)
    finally:
        os.close(fd)
    return contents


def test_packets_of_a_file_may_be_counted_in_steps_smaller_than_a_packet(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STEP_BYTES", 3)  # A packet has more than three bytes.
    contents = count_file(tmp_path, (EVENT + PROCESS + THREAD) * 50)
    assert (contents.events, contents.processes, contents.threads) == (50, {7}, {(7, 8)})


def test_incomplete_end_of_a_file_is_ignored(tmp_path):
    assert count_file(tmp_path, EVENT * 2 + EVENT[:-1]).events == 2
    assert count_file(tmp_path, b"").events == 0
    assert count_file(tmp_path, b"no trace").events == 0


def test_packets_of_a_growing_file_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STEP_BYTES", 5000)
    contents = Contents()
    with open(tmp_path / "trace", "w+b", buffering=0) as file:
        for _ in range(5):
            file.write(EVENT[-2:] + EVENT * 3000 + EVENT[:-2] if file.tell() else EVENT[:-2])
            while contents.add_next(file.fileno()):
                pass
        file.write(EVENT[-2:] + PROCESS)
        contents.add_file(file.fileno())
    assert contents.events == 4 * 3001 + 1
    assert contents.processes == {7}
