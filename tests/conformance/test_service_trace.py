"""Perfetto's trace processor reads the traces of the service without errors."""

from __future__ import annotations

import os

import pytest

from stretto.protos.config import TraceConfig
from stretto.protos.trace import TracePacket, TrackEvent
from stretto.service.output import packet_encoder as encode
from stretto.testing.chunk_builder import ChunkBuilder
from tests.conformance.tables import compare
from tests.support.service_setup import Setup, make_config


@pytest.fixture
def setup():
    return Setup()


def write_instants(writer, clock, count):
    """Write instants at intervals of a microsecond."""
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
    """Check that a trace has no errors and all events."""
    from tests.support.oracle import ERRORS

    processor = oracle(trace)
    assert processor.query(ERRORS) == []
    assert processor.query("select count(*) from slice") == [(count,)]
    return processor


def test_trace_of_a_session_read_at_its_end_is_valid(setup, oracle):
    producer = setup.producer("ds", name="p")
    consumer = setup.enable(make_config("ds", duration_ms=500))
    write_instants(producer.writer("ds"), setup.clock, 300)
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


def test_trace_of_a_session_streamed_into_a_file_is_valid(setup, oracle, tmp_path):
    producer = setup.producer("ds")
    path = tmp_path / "trace"
    config = make_config("ds", write_into_file=True, output_path=str(path))
    config.file_write_period_ms = 200
    config.flush_period_ms = (
        5000  # older trace processors need a flush period; newer ones assume 5 s
    )
    consumer = setup.enable(config)
    writer = producer.writer("ds")
    for part in range(100):
        write_instants(writer, setup.clock, 5)
        setup.advance(300 if part % 2 else 10)
    consumer.flush()
    setup.run()
    consumer.endpoint.disable_tracing()
    setup.run()
    check(path.read_bytes(), oracle, 500)


def test_trace_of_a_cloned_ring_buffer_is_valid(setup, oracle):
    producer = setup.producer("ds")
    config = make_config("ds")
    config.buffers[0].transfer_on_clone = True
    source = setup.enable(config)
    write_instants(producer.writer("ds"), setup.clock, 50)
    clone = setup.consumer()
    clone.clone(source.endpoint.session_id)
    setup.run()
    setup.advance(100)
    setup.read(clone)
    check(clone.data, oracle, 50)


def test_trace_of_a_clone_of_a_session_written_into_a_file_is_valid(setup, oracle, tmp_path):
    producer = setup.producer("ds")
    path, copy = tmp_path / "trace", tmp_path / "copy"
    config = make_config("ds", write_into_file=True, output_path=str(path), flush_period_ms=5000)
    source = setup.enable(config)
    writers = [producer.writer("ds") for _ in range(3)]
    for writer in writers:
        write_instants(writer, setup.clock, 20)
        writer.flush()
        setup.advance(5000)
    write_instants(writers[0], setup.clock, 20)
    clone = setup.consumer()
    with copy.open("w+b") as target:
        clone.clone(source.endpoint.session_id, target.fileno())
        setup.run()
    assert clone.clones[0].success
    check(copy.read_bytes(), oracle, 80)
    source.endpoint.disable_tracing()
    setup.run()
    check(path.read_bytes(), oracle, 80)


def test_compressed_trace_is_valid(setup, oracle):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds", compression_type=1))
    write_instants(producer.writer("ds"), setup.clock, 300)
    consumer.flush()
    setup.run()
    consumer.endpoint.disable_tracing()
    setup.read(consumer)
    assert len(consumer.packets()) < 5
    check(consumer.data, oracle, 300)


def test_trace_with_triggers_and_a_remote_machine_is_valid(oracle):
    setup = Setup(extension_descriptors=[("empty.desc", b"")])
    setup.enable(make_config(unique_session_name="other"))
    relay = setup.service.connect_relay(9)
    relay.init_relay(b"")
    for update in (False, True):
        setup.clock.advance_ms(1)
        relay.sync_clock(setup.clock.snapshot(), update=update)
    producer = setup.producer("ds", name="p")
    far = setup.producer("ds", in_process=False, machine_id=9, name="far")
    waits = TraceConfig.TriggerConfig(
        trigger_mode=2,
        trigger_timeout_ms=1000,
        triggers=[TraceConfig.TriggerConfig.Trigger(name="now", stop_delay_ms=10)],
    )
    builtin = TraceConfig.BuiltinDataSource(enable_concurrent_session_events=True)
    config = make_config("ds", trigger_config=waits, builtin_data_sources=builtin)
    config.trace_all_machines = True
    consumer = setup.enable(config)
    write_instants(producer.writer("ds"), setup.clock, 30)
    packet = TracePacket(
        timestamp=setup.clock.boottime_ns(),
        track_event=TrackEvent(type=3, name="far", categories=["c"], track_uuid=8),
        sequence_flags=1,
    )
    chunk = ChunkBuilder(1, 0).add(packet.encode()).chunk()
    target = far.configs["ds"].target_buffer
    far.endpoint.core.commit(encode.blob(1, encode.number(3, target) + encode.blob(4, chunk)))
    producer.endpoint.activate_triggers(["now"])
    setup.advance(10)
    setup.read(consumer)
    processor = check(
        consumer.data, oracle, 32
    )  # 31 events, and the slice that the trace processor makes for the trigger
    assert processor.query("select count(*) from slice where name = 'now'") == [(1,)]
    assert processor.query("select count(*) from machine") == [(2,)]
    different = [str(result) for result in compare(consumer.data) if not result.is_equal]
    assert not different, "\n".join(different)


def test_snapshot_of_a_running_session_is_a_valid_trace(setup, oracle):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    write_instants(producer.writer("ds"), setup.clock, 50)
    check(b"".join(setup.service.snapshot(consumer.endpoint.session_id)), oracle, 50)
