"""The test helper `oracle` loads a valid trace and reports the errors of an invalid one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.oracle import Oracle

perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

NEEDS_STATE = perfetto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
CLEARED = perfetto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED


def trace(*, first_flags: int) -> bytes:
    """Return a trace with one slice; `first_flags` are the sequence_flags of its first packet."""
    built = perfetto.Trace()
    track = built.packet.add(trusted_packet_sequence_id=2, sequence_flags=first_flags)
    track.track_descriptor.uuid = 7
    track.track_descriptor.thread.pid = 10
    track.track_descriptor.thread.tid = 11
    track.track_descriptor.thread.thread_name = "worker"
    for timestamp, kind in ((100, "TYPE_SLICE_BEGIN"), (300, "TYPE_SLICE_END")):
        packet = built.packet.add(
            trusted_packet_sequence_id=2, sequence_flags=NEEDS_STATE, timestamp=timestamp
        )
        packet.track_event.track_uuid = 7
        packet.track_event.type = getattr(perfetto.TrackEvent, kind)
        packet.track_event.categories.append("test")
        if kind == "TYPE_SLICE_BEGIN":
            packet.track_event.name = "work"
    return bytes(built.SerializeToString())


def test_oracle_finds_the_slice_and_no_error_in_a_valid_trace(
    oracle: Callable[[bytes], Oracle],
) -> None:
    judge = oracle(trace(first_flags=CLEARED))
    slices = judge.query(
        "select slice.name, ts, dur, thread.name from slice join thread_track on track_id = "
        "thread_track.id join thread using (utid)"
    )
    assert slices == [("work", 100, 200, "worker")]
    assert judge.errors() == []


def test_oracle_reports_a_packet_sequence_without_its_first_packet(
    oracle: Callable[[bytes], Oracle],
) -> None:
    errors = oracle(trace(first_flags=NEEDS_STATE)).errors()
    assert [name for name, _, _ in errors] == ["tokenizer_skipped_packets"]
