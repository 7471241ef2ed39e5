"""Stats of writers, flushes and discarded chunks, and the provenance of packets."""

from __future__ import annotations

from stretto.protos.config import TraceConfig
from stretto.protos.trace import TraceStats
from stretto.testing.chunk_builder import ChunkBuilder, chunk_to_move, chunk_to_patch
from tests.support.service_setup import data_source, event, make_config

THRESHOLDS = [8, 32, 128, 512, 1024, 2048, 4096, 8192, 12288, 16384]


def two_buffers(**fields):
    config = make_config(buffers=2, **fields)
    config.data_sources = [data_source("a", target_buffer=0), data_source("b", target_buffer=1)]
    return config


def test_writer_stats_contain_histograms_of_chunk_payloads(setup):
    producer = setup.producer("a", "b")
    consumer = setup.enable(two_buffers())
    for name, size in (("a", 1), ("b", 600)):
        writer = producer.writer(name)
        writer.write(event("x" * size))
        writer.flush()
    stats = TraceStats.decode(consumer.endpoint.trace_stats())
    assert stats.chunk_payload_histogram_def == THRESHOLDS
    listed = [(w.sequence_id, w.buffer) for w in stats.writer_stats]
    assert listed == [(2, 0), (3, 1)]
    counts = [list(w.chunk_payload_histogram_counts) for w in stats.writer_stats]
    assert counts[0] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert counts[1] == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert stats.writer_stats[1].chunk_payload_histogram_sum[4] > 600
    ids = {p.trusted_packet_sequence_id for p in setup.read(consumer) if p.has("for_testing")}
    assert ids == {2, 3}


def test_writer_histograms_can_be_disabled(setup):
    producer = setup.producer("a")
    builtin = TraceConfig.BuiltinDataSource(disable_chunk_usage_histograms=True)
    consumer = setup.enable(make_config("a", builtin_data_sources=builtin))
    setup.write(producer, "data", source="a")
    stats = TraceStats.decode(consumer.endpoint.trace_stats())
    assert not stats.writer_stats
    assert not stats.chunk_payload_histogram_def


def test_trace_provenance_lists_sequences_and_producers_per_buffer(setup):
    first, second = setup.producer("a"), setup.producer("a", "b")
    consumer = setup.enable(two_buffers())
    setup.write(first, "one", source="a")
    setup.write(second, "two", source="a")
    setup.write(second, "three", source="b")
    packets = setup.read(consumer)
    (listed,) = [p.trace_provenance for p in packets if p.has("trace_provenance")]
    buffers = [[(s.id, s.producer_id) for s in buffer.sequences] for buffer in listed.buffers]
    assert buffers == [[(2, 1), (3, 2)], [(4, 2)]]
    of_packets = [
        (p.for_testing.str, p.trusted_packet_sequence_id) for p in packets if p.has("for_testing")
    ]
    assert of_packets == [("one", 2), ("two", 3), ("three", 4)]


def test_requested_succeeded_and_failed_flushes_are_counted_per_session(setup):
    setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds", flush_timeout_ms=10))
    consumer.flush()
    setup.advance(10)
    setup.producer("other")
    answering = setup.enable(make_config("other"))
    answering.flush()
    setup.run()
    for each, succeeded, failed in ((consumer, 0, 1), (answering, 1, 0)):
        stats = TraceStats.decode(each.endpoint.trace_stats())
        assert stats.flushes_requested == 1
        assert (stats.flushes_succeeded, stats.flushes_failed) == (succeeded, failed)


def test_chunks_and_patches_for_unknown_buffers_are_counted_as_discarded(setup):
    producer = setup.producer("ds", in_process=False)
    consumer = setup.enable(make_config("ds"))
    producer.memory[:4096] = ChunkBuilder(1, 0).add(event("x")).page()
    producer.endpoint.core.commit(chunk_to_move(0, 9999))
    producer.endpoint.core.commit(chunk_to_patch(9999, 1, 0, [(0, bytes(4)), (4, bytes(4))]))
    stats = TraceStats.decode(consumer.endpoint.trace_stats())
    assert stats.chunks_discarded == 1
    assert stats.patches_discarded == 2
