"""ChunkBuilder makes chunks with the documented bytes; the native service can read the chunks."""

from __future__ import annotations

import os

import pytest

from stretto import _native
from stretto.base.memory import create_sealed_memfd
from stretto.testing import chunk_builder
from stretto.testing.chunk_builder import ChunkBuilder, chunk_to_move, chunk_to_patch, flush_done
from stretto.testing.decoded_packets import split_packets

PAGE = 4096


def test_chunk_has_the_documented_bytes():
    chunk = ChunkBuilder(0x0102, 0x03040506, flags=5).add(b"ab").add(b"")
    assert chunk.chunk().hex() == "06050403" + "0201" + "0214" + "026162" + "00"
    assert chunk.chunk(count=1)[6:8].hex() == "0114"
    page = chunk.page()
    assert len(page) == PAGE
    assert page[:8].hex() == "03000010" + "00000000"
    with pytest.raises(ValueError, match="don't fit"):
        ChunkBuilder(1, 0).add(b"x" * PAGE).page()


class Receiver:
    """A trace buffer, and the shared memory of one producer."""

    def __init__(self):
        self.table = _native.BufferTable()
        self.table.create(7, 65536, _native.RING)
        self.table.set_producer(7, 1, 1, 1)
        self.core = _native.ProducerEndpointCore(self.table, 1)
        self.fd = create_sealed_memfd(16 * PAGE)
        self.core.attach_fd(self.fd, 16 * PAGE, PAGE)
        self.core.allow_buffer(7, True)
        self.readback = _native.Readback(self.table)

    def commit(self, *chunks, then=b""):
        moves = b""
        for page, chunk in enumerate(chunks):
            os.pwrite(self.fd, chunk.page(), page * PAGE)
            moves += chunk_to_move(page, 7)
        return self.core.commit(moves + then)

    def read(self):
        self.readback.begin(7)
        data, _ = self.readback.read(7, 1 << 20)
        return list(split_packets(data))


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    os.close(receiver.fd)


FIELD = b"\xa2\x38\x02\x0a\x00"
"""A valid packet with the field `for_testing`."""


def test_whole_packets_are_committed_and_read(receiver):
    assert receiver.commit(ChunkBuilder(1, 0).add(FIELD).add(FIELD), then=flush_done(9)) == 9
    assert [packet.startswith(FIELD) for packet in receiver.read()] == [True, True]


def test_packet_in_two_fragments_is_read_when_it_is_complete(receiver):
    first = ChunkBuilder(1, 0, chunk_builder.CONTINUES_ON_NEXT).add(FIELD[:2])
    second = ChunkBuilder(1, 1, chunk_builder.CONTINUES_FROM_PREVIOUS).add(FIELD[2:])
    receiver.commit(first)
    assert receiver.read() == []
    receiver.commit(second)
    (packet,) = receiver.read()
    assert packet.startswith(FIELD)


def test_packet_is_read_after_its_length_is_patched(receiver):
    """Like a producer, patch the length of a packet last, after the packet's second chunk."""
    before, size, after = b"\xa2\x38", b"\x82\x80\x80\0", b"\x0a\0"
    flags = chunk_builder.NEEDS_PATCHING | chunk_builder.CONTINUES_ON_NEXT
    receiver.commit(ChunkBuilder(1, 0, flags).add(before + b"\0\0\0\0"))
    receiver.commit(ChunkBuilder(1, 1, chunk_builder.CONTINUES_FROM_PREVIOUS).add(after))
    assert receiver.read() == []
    receiver.commit(then=chunk_to_patch(7, 1, 0, [(1 + len(before), size)]))
    (packet,) = receiver.read()
    assert packet.startswith(before + size + after)


def test_dropped_packet_is_counted(receiver):
    receiver.commit(ChunkBuilder(1, 0).add(FIELD).drop_packet())
    assert len(receiver.read()) == 1
    assert receiver.table.stats(7)["trace_writer_packet_loss"] == 1
