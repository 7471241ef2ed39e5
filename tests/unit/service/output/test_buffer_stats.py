"""Each counter of TraceStats.BufferStats as a consumer reads it (see docs/compat.md)."""

from __future__ import annotations

import pytest

from stretto.protos.trace import TraceStats
from stretto.testing.chunk_builder import (
    CONTINUES_FROM_PREVIOUS,
    CONTINUES_ON_NEXT,
    NEEDS_PATCHING,
    ChunkBuilder,
    chunk_to_move,
    chunk_to_patch,
)
from tests.support.service_setup import Setup, event, make_config

SIZE_KB = 16
RING, DISCARD = 1, 2
LARGE = 3000
"""Size in bytes of an event; five such events fit into the buffer."""


class Buffer:
    """A session with one buffer, and a producer that commits chunks into it."""

    def __init__(self, policy: int = RING) -> None:
        self.setup = Setup()
        self.producer = self.setup.producer("ds", in_process=False)
        config = make_config("ds", size_kb=SIZE_KB)
        config.buffers[0].fill_policy = policy
        self.consumer = self.setup.enable(config)
        (self.target,) = self.setup.session().buffers

    def commit(self, *chunks: ChunkBuilder) -> None:
        size = self.producer.page_size
        for chunk in chunks:
            self.producer.memory[:size] = chunk.page(size)
            self.producer.endpoint.core.commit(chunk_to_move(0, self.target))

    def patch(self, chunk_id: int, offset: int = 0) -> None:
        patches = [(offset, b"\x81\x80\x80\x00")]
        self.producer.endpoint.core.commit(chunk_to_patch(self.target, 1, chunk_id, patches))

    def read(self) -> None:
        self.setup.read(self.consumer)

    @property
    def stats(self) -> TraceStats.BufferStats:
        stats = TraceStats.decode(self.consumer.endpoint.trace_stats())
        (only,) = stats.buffer_stats
        return only


def small(chunk_id: int, flags: int = 0, text: str = "x") -> ChunkBuilder:
    return ChunkBuilder(1, chunk_id, flags).add(event(text))


def large(chunk_id: int) -> ChunkBuilder:
    return small(chunk_id, text="x" * LARGE)


@pytest.fixture
def buffer() -> Buffer:
    return Buffer()


@pytest.fixture
def wrapped() -> Buffer:
    """Return a ring buffer whose sixth chunk overwrote the first chunk before it was read."""
    buffer = Buffer()
    buffer.commit(*map(large, range(6)))
    return buffer


def test_buffer_size_is_reported_in_bytes(buffer):
    assert buffer.stats.buffer_size == SIZE_KB * 1024


def test_written_bytes_and_chunks_are_counted(buffer):
    buffer.commit(small(0), small(1))
    assert buffer.stats.chunks_written == 2
    assert buffer.stats.bytes_written > 2 * len(event("x"))


def test_read_bytes_and_chunks_are_counted(buffer):
    buffer.commit(small(0), small(1))
    assert (buffer.stats.bytes_read, buffer.stats.chunks_read) == (0, 0)
    buffer.read()
    assert buffer.stats.chunks_read == 2
    assert buffer.stats.bytes_read == buffer.stats.bytes_written


def test_overwritten_bytes_and_chunks_are_counted(wrapped):
    assert wrapped.stats.chunks_overwritten > 0
    assert wrapped.stats.bytes_overwritten > LARGE


def test_replaced_chunks_that_were_read_do_not_count_as_overwritten(buffer):
    buffer.commit(*map(large, range(5)))
    buffer.read()
    buffer.commit(large(5))
    assert buffer.stats.chunks_overwritten == 0


def test_wraps_of_the_ring_buffer_are_counted(buffer, wrapped):
    assert buffer.stats.write_wrap_count == 0
    assert wrapped.stats.write_wrap_count == 1


def test_space_left_by_a_smaller_chunk_is_counted_as_padding(wrapped):
    assert wrapped.stats.padding_bytes_written == 0
    wrapped.commit(small(6))
    assert (
        0 < wrapped.stats.padding_bytes_written <= 3040
    )  # The padding is the remaining space of the replaced chunk.


def test_overwritten_padding_is_counted_as_cleared(wrapped):
    wrapped.commit(small(6))
    assert wrapped.stats.padding_bytes_cleared == 0
    wrapped.commit(small(7))
    assert wrapped.stats.padding_bytes_cleared > 0


def test_chunks_that_do_not_fit_are_counted_as_discarded():
    buffer = Buffer(DISCARD)
    buffer.commit(*map(large, range(6)))
    assert buffer.stats.chunks_written == 5
    assert buffer.stats.chunks_discarded == 1


def test_chunks_committed_out_of_order_are_counted(buffer):
    buffer.commit(small(0), small(2), small(1))
    assert buffer.stats.chunks_committed_out_of_order == 1


class TestScrapedChunks:
    """Tests with a chunk that is scraped before its writer completes and commits it."""

    @pytest.fixture
    def scraped(self):
        setup = Setup()
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        writer = producer.writer("ds")
        writer.write(event("early"))
        setup.session().scrape()
        writer.write(event("late"))
        return setup, consumer, writer

    def counts(self, consumer):
        stats = TraceStats.decode(consumer.endpoint.trace_stats()).buffer_stats[0]
        return stats.chunks_rewritten, stats.chunks_relocated

    def test_commit_of_a_chunk_that_was_scraped_but_not_read_counts_as_rewritten(self, scraped):
        _, consumer, writer = scraped
        writer.flush()
        assert self.counts(consumer) == (1, 0)

    def test_commit_of_a_chunk_that_was_scraped_and_read_counts_as_relocated(self, scraped):
        setup, consumer, writer = scraped
        setup.read(consumer)
        writer.flush()
        assert self.counts(consumer) == (0, 1)


def test_applied_and_failed_patches_are_counted(buffer):
    buffer.commit(ChunkBuilder(1, 0, NEEDS_PATCHING).add(bytes(100)))
    buffer.patch(0, offset=10)
    assert (buffer.stats.patches_succeeded, buffer.stats.patches_failed) == (1, 0)
    buffer.patch(7)
    assert (buffer.stats.patches_succeeded, buffer.stats.patches_failed) == (1, 1)


def test_complete_and_incomplete_fragmented_packets_are_counted_as_readaheads(buffer):
    whole = [small(0, CONTINUES_ON_NEXT), ChunkBuilder(1, 1, CONTINUES_FROM_PREVIOUS).add(b"")]
    buffer.commit(*whole)
    buffer.read()
    assert (buffer.stats.readaheads_succeeded, buffer.stats.readaheads_failed) == (1, 0)
    buffer.commit(small(2, CONTINUES_ON_NEXT))
    buffer.read()
    assert (buffer.stats.readaheads_succeeded, buffer.stats.readaheads_failed) == (1, 1)


def test_malformed_chunks_are_counted_as_abi_violations(buffer):
    buffer.commit(ChunkBuilder(1, 0).add_raw(b"\xf0\x7fshort"))
    buffer.read()
    assert buffer.stats.abi_violations == 1


def test_packets_dropped_by_a_writer_are_counted(buffer):
    buffer.commit(ChunkBuilder(1, 0).add(event("x")).drop_packet())
    buffer.read()
    assert buffer.stats.trace_writer_packet_loss == 1


@pytest.mark.parametrize(
    "name", ["compactions", "compactions_skipped", "oversized_packets_dropped"]
)
def test_buffer_counters_of_unsupported_features_are_omitted(wrapped, name):
    assert not wrapped.stats.has(name)
