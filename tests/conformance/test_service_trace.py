"""Perfetto's trace processor reads what the service writes, without one complaint."""

from __future__ import annotations

import os

import pytest

from stretto.protos.trace import TracePacket, TrackEvent
from tests.support.service_setup import Setup, make_config


@pytest.fixture
def setup():
    return Setup()


def slices(writer, clock, count):
    """Write instants, each a microsecond after the one before."""
    for number in range(count):
        clock.advance_ns(1000)
        packet = TracePacket(
            timestamp=clock.boottime_ns(),
            track_event=TrackEvent(type=3, name=f"e{number}", categories=["c"], track_uuid=7),
        )
        if not number:
            packet.sequence_flags = 1
        writer.write(packet.encode())


def check(trace, oracle, count):
    """No error of any kind, and every event there."""
    from tests.support.oracle import ERRORS

    processor = oracle(trace)
    assert processor.query(ERRORS) == []
    assert processor.query("select count(*) from slice") == [(count,)]
    return processor


def test_session_that_is_read_at_its_end(setup, oracle):
    producer = setup.producer("ds", name="p")
    consumer = setup.enable(make_config("ds", duration_ms=500))
    slices(producer.writer("ds"), setup.clock, 300)
    setup.advance(500)
    setup.read(consumer)
    processor = check(consumer.data, oracle, 300)
    metadata = dict(processor.query("select name, ifnull(str_value, int_value) from metadata"))
    assert metadata["trace_uuid"] == "00000000-0000-4000-8000-000000000000"
    assert 'name: "ds"' in metadata["trace_config_pbtxt"]
    assert metadata["system_name"] == os.uname().sysname
    assert metadata["tracing_started_ns"] < metadata["tracing_disabled_ns"]
    stats = dict(processor.query("select name, value from stats where value != 0"))
    assert stats["traced_final_flush_succeeded"] == 1
    assert stats["traced_producers_seen"] == 1


def test_session_that_streams_into_a_file(setup, oracle, tmp_path):
    producer = setup.producer("ds")
    path = tmp_path / "trace"
    config = make_config("ds", write_into_file=True, output_path=str(path))
    config.file_write_period_ms = 200
    config.flush_period_ms = 5000  # Implied by now, but that version still asks for it.
    consumer = setup.enable(config)
    writer = producer.writer("ds")
    for part in range(100):
        slices(writer, setup.clock, 5)
        setup.advance(300 if part % 2 else 10)
    consumer.flush()
    setup.run()
    consumer.endpoint.disable_tracing()
    setup.run()
    check(path.read_bytes(), oracle, 500)


def test_snapshot(setup, oracle):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    slices(producer.writer("ds"), setup.clock, 50)
    check(b"".join(setup.service.snapshot(consumer.endpoint.session_id)), oracle, 50)
