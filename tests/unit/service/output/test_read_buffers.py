"""Order and content of the packets that a consumer reads from its session."""

from __future__ import annotations

import pytest

from stretto.base.errors import SessionError
from stretto.base.sync_marker import SYNC_MARKER
from stretto.protos.config import TraceConfig
from stretto.protos.trace import TracePacket, TraceStats
from stretto.testing.decoded_packets import decode_packets, split_packets
from tests.support.service_setup import UID, event, events, kinds, make_config, texts


def write(setup, producer, *packets, source="ds"):
    writer = producer.writer(source)
    for packet in packets:
        assert writer.write(packet)
    writer.flush()
    setup.run()
    return writer


def test_first_read_starts_with_packets_of_the_service(setup):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    write(setup, producer, event("a"), event("b"))
    packets = setup.read(consumer)
    assert kinds(packets) == [
        "clock_snapshot", "clock_snapshot", "synchronization_marker", "trace_config",
        "trace_uuid", "trace_provenance", "system_info", "service_event", "service_event",
        "for_testing", "for_testing", "service_event", "trace_stats",
    ]  # fmt: skip
    assert events(packets) == [
        "tracing_started",
        "all_data_sources_started",
        "read_tracing_buffers_completed",
    ]
    assert consumer.reads[-1][1] is False


def test_later_reads_contain_only_new_packets(setup):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    setup.read(consumer)
    assert kinds(setup.read(consumer)) == ["service_event"]
    write(setup, producer, event("late"))
    assert kinds(setup.read(consumer)) == ["for_testing", "service_event"]


def test_sync_marker_clock_snapshot_and_stats_are_repeated_every_10_s(setup):
    consumer = setup.enable(make_config())
    setup.read(consumer)
    setup.advance(9_999)
    assert kinds(setup.read(consumer)) == ["service_event"]
    setup.advance(1)
    assert kinds(setup.read(consumer)) == [
        "clock_snapshot", "synchronization_marker", "service_event", "trace_stats",
    ]  # fmt: skip


def test_snapshot_interval_is_configurable(setup):
    builtin = TraceConfig.BuiltinDataSource(snapshot_interval_ms=100)
    consumer = setup.enable(make_config(builtin_data_sources=builtin))
    setup.read(consumer)
    setup.advance(100)
    assert "synchronization_marker" in kinds(setup.read(consumer))


def test_clock_snapshot_is_queued_when_the_wall_clock_jumps(setup):
    consumer = setup.enable(make_config())
    setup.advance(10_000)
    assert len(setup.session().clocks.queued()) == 1
    setup.clock.step_walltime_ns(10_000_000)
    setup.advance(10_000)
    assert kinds(setup.read(consumer)).count("clock_snapshot") == 3


def test_number_of_queued_clock_snapshots_is_bounded(setup):
    consumer = setup.enable(make_config())
    for _ in range(40):
        setup.clock.step_walltime_ns(20_000_000)
        setup.advance(10_000)
    assert kinds(setup.read(consumer)).count("clock_snapshot") == 17


def test_builtin_data_sources_can_be_disabled(setup):
    builtin = TraceConfig.BuiltinDataSource(
        disable_clock_snapshotting=True,
        disable_trace_config=True,
        disable_system_info=True,
        disable_service_events=True,
    )
    consumer = setup.enable(make_config(builtin_data_sources=builtin))
    assert kinds(setup.read(consumer)) == [
        "synchronization_marker", "trace_uuid", "trace_provenance", "trace_stats",
    ]  # fmt: skip


def test_primary_trace_clock_is_in_the_clock_snapshot(setup):
    builtin = TraceConfig.BuiltinDataSource(primary_trace_clock=3)
    consumer = setup.enable(make_config(builtin_data_sources=builtin))
    assert setup.read(consumer)[0].clock_snapshot.primary_trace_clock == 3


def test_config_packet_contains_the_bytes_of_the_consumer_unchanged(setup):
    unknown = b"\xfa\xff\x0f\x03abc"
    config = make_config().encode() + unknown
    consumer = setup.consumer()
    consumer.endpoint.enable_tracing(config)
    setup.run()
    setup.read(consumer)
    (packet,) = [p for p in split_packets(consumer.data) if unknown in p]
    assert packet.endswith(config)


def test_uuid_packet_contains_the_uuid_of_the_config(setup):
    consumer = setup.enable(make_config(trace_uuid_msb=-1, trace_uuid_lsb=7))
    (uuid,) = [p.trace_uuid for p in setup.read(consumer) if p.has("trace_uuid")]
    assert (uuid.msb, uuid.lsb) == (-1, 7)


def test_trace_uuid_is_random_without_a_uuid_in_the_config(setup):
    setup.service.context.random_bytes = lambda n: b"\xff" * n
    consumer = setup.enable(make_config())
    (uuid,) = [p.trace_uuid for p in setup.read(consumer) if p.has("trace_uuid")]
    assert uuid.msb % 2**64 == 0xFFFFFFFFFFFF4FFF
    assert uuid.lsb % 2**64 == 0xBFFFFFFFFFFFFFFF


def test_buffers_are_read_in_index_order(setup):
    producer = setup.producer("a", "b")
    config = make_config("a", "b", buffers=2)
    config.data_sources[0].config.target_buffer = 1
    consumer = setup.enable(config)
    write(setup, producer, event("in 1"), source="a")
    write(setup, producer, event("in 0"), source="b")
    assert texts(setup.read(consumer)) == ["in 0", "in 1"]


def test_packets_contain_uid_pid_and_sequence_id_of_their_writer(setup):
    first = setup.producer("ds", uid=123, pid=11)
    second = setup.producer("ds", uid=456, pid=22)
    consumer = setup.enable(make_config("ds"))
    one, two = write(setup, first, event("1a")), write(setup, first, event("2a"))
    three = write(setup, second, event("3a"))
    for writer, text in ((one, "1b"), (three, "3b"), (two, "2b")):
        writer.write(event(text))
        writer.flush()
    packets = setup.read(consumer)
    who = {
        p.for_testing.str: (p.trusted_uid, p.trusted_pid, p.trusted_packet_sequence_id)
        for p in packets
        if p.has("for_testing")
    }
    assert {text: found[:2] for text, found in who.items()} == {
        "1a": (123, 11), "1b": (123, 11), "2a": (123, 11), "2b": (123, 11),
        "3a": (456, 22), "3b": (456, 22),
    }  # fmt: skip
    sequences = [who[text][2] for text in ("1a", "1b", "2a", "2b", "3a", "3b")]
    assert sequences[0::2] == sequences[1::2]
    assert sorted(sequences[0::2]) == [2, 3, 4]
    for packet in packets:
        if not packet.has("for_testing"):
            assert (packet.trusted_uid, packet.trusted_packet_sequence_id) == (UID, 1)


def test_trace_can_be_split_at_sync_markers(setup):
    builtin = TraceConfig.BuiltinDataSource(snapshot_interval_ms=100)
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds", builtin_data_sources=builtin))
    for number in range(5):
        write(setup, producer, event(f"payload {number}"))
        setup.read(consumer)
        setup.advance(100)
    marker = next(p for p in split_packets(consumer.data) if SYNC_MARKER in p)
    framed = b"\x0a" + bytes([len(marker)]) + marker
    parts = consumer.data.split(framed)
    assert len(parts) == 6
    found = [TracePacket.decode(p) for part in parts for p in split_packets(part)]
    assert texts(found) == [f"payload {number}" for number in range(5)]


def test_large_results_of_a_read_are_split_into_messages(setup):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds", size_kb=1024))
    writer = producer.writer("ds")
    sent = [f"{number} " + "x" * 900 for number in range(150)]
    for text in sent:
        writer.write(event(text))
        writer.flush()
    assert texts(setup.read(consumer)) == sent
    sizes = [size for size, _ in consumer.reads]
    assert len(sizes) >= 4
    assert max(sizes) < 34_000
    assert [more for _, more in consumer.reads] == [True] * (len(sizes) - 1) + [False]
    assert events(consumer.packets()).count("read_tracing_buffers_completed") == 1


def test_freed_session_ends_an_unfinished_read(setup):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    writer = producer.writer("ds")
    for _ in range(100):
        writer.write(event("x" * 900))
        writer.flush()
    consumer.endpoint.read_buffers()
    setup.runner._step()
    consumer.endpoint.free_buffers()
    setup.run()
    assert [more for _, more in consumer.reads] == [True, False]


def test_disabled_session_can_still_be_read(setup):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    write(setup, producer, event("kept"))
    consumer.endpoint.disable_tracing()
    setup.run()
    packets = setup.read(consumer)
    assert texts(packets) == ["kept"]
    assert "tracing_disabled" in events(packets)


def test_trace_stats_count_buffers_sessions_producers_and_data_sources(setup):
    setup.producer("ds", "other")
    assert setup.consumer().endpoint.trace_stats() is None
    consumer = setup.enable(make_config("ds", buffers=2, size_kb=64))
    setup.enable(make_config())
    stats = TraceStats.decode(consumer.endpoint.trace_stats())
    assert [buffer.buffer_size for buffer in stats.buffer_stats] == [65536, 65536]
    assert (stats.producers_connected, stats.producers_seen) == (1, 1)
    assert (stats.data_sources_registered, stats.data_sources_seen) == (2, 1)
    assert (stats.tracing_sessions, stats.total_buffers) == (2, 3)


class TestSessionSnapshot:
    def test_snapshot_does_not_change_the_session(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        write(setup, producer, event("a"))
        writer = producer.writer("ds")
        writer.write(event("in hand"))
        copy = b"".join(setup.service.snapshot(consumer.endpoint.session_id))
        write(setup, producer, event("b"))
        writer.flush()
        packets = decode_packets(copy)
        assert sorted(texts(packets)) == ["a", "in hand"]
        own = setup.read(consumer)
        assert sorted(texts(own)) == ["a", "b", "in hand"]
        assert [kind for kind in kinds(own) if kind != "for_testing"] == [
            kind for kind in kinds(packets) if kind != "for_testing"
        ]

    def test_snapshot_has_its_own_uuid(self, setup):
        consumer = setup.enable(make_config(trace_uuid_msb=5, trace_uuid_lsb=7))
        copy = b"".join(setup.service.snapshot(consumer.endpoint.session_id))
        packets = decode_packets(copy)
        (uuid,) = [p.trace_uuid for p in packets if p.has("trace_uuid")]
        assert uuid.lsb == 7
        assert uuid.msb != 5

    def test_snapshot_contains_only_data_from_before_the_call(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        write(setup, producer, event("before"))
        pieces = setup.service.snapshot(consumer.endpoint.session_id)
        write(setup, producer, event("after"))
        packets = decode_packets(b"".join(pieces))
        assert texts(packets) == ["before"]

    def test_finished_snapshot_frees_its_buffers(self, setup):
        consumer = setup.enable(make_config(buffers=3))
        used = set(setup.service.buffers.ids.in_use)
        pieces = setup.service.snapshot(consumer.endpoint.session_id)
        assert len(setup.service.buffers.ids.in_use) == 6
        pieces.close()
        assert setup.service.buffers.ids.in_use == used
        list(setup.service.snapshot(consumer.endpoint.session_id))
        assert setup.service.buffers.ids.in_use == used

    def test_snapshot_outlives_the_session(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        write(setup, producer, event("kept"))
        pieces = setup.service.snapshot(consumer.endpoint.session_id)
        consumer.endpoint.free_buffers()
        setup.run()
        packets = decode_packets(b"".join(pieces))
        assert texts(packets) == ["kept"]
        assert len(packets[-1].trace_stats.buffer_stats) == 1

    def test_snapshot_of_an_unknown_session_is_an_error(self, setup):
        with pytest.raises(SessionError, match="no session 5"):
            setup.service.snapshot(5)
