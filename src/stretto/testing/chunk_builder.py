"""Builds chunks of shared memory, valid or invalid, as a producer writes them.

::

    | chunk id u32 | writer id u16 | count and flags u16 | size | fragment | size | ...

Source: docs/formats/shared_memory.md, "Chunk header", "Packets and fragments".
"""

from __future__ import annotations

import struct
from typing import Final

from stretto.service.output.packet_encoder import blob, number, varint

CONTINUES_FROM_PREVIOUS: Final = 1
CONTINUES_ON_NEXT: Final = 2
NEEDS_PATCHING: Final = 4

PAGE_HEADER_SIZE: Final = 8
CHUNK_HEADER_SIZE: Final = 8
DROP_SENTINEL: Final = b"\xff\xff\xff\x7f"
"""Size field that marks a packet as dropped by its writer."""

CHUNK_COMPLETE: Final = 3
"""Chunk state: the service may copy the chunk."""
LAYOUT_DIV1: Final = 1
_LAYOUT_SHIFT: Final = 28
_FLAGS_SHIFT: Final = 10


class ChunkBuilder:
    """Builds one chunk from fragments.

    Args:
        writer_id: Id of the writer.
        chunk_id: Position of the chunk in the writer's sequence.
        flags: CONTINUES_FROM_PREVIOUS, CONTINUES_ON_NEXT, NEEDS_PATCHING.
    """

    def __init__(self, writer_id: int, chunk_id: int, flags: int = 0) -> None:
        self.writer_id = writer_id
        self.chunk_id = chunk_id
        self.flags = flags
        self._payload = bytearray()
        self._count = 0

    def add(self, fragment: bytes) -> ChunkBuilder:
        """Append a whole packet or a part of one. Returns the builder."""
        return self.add_raw(varint(len(fragment)) + fragment)

    def add_raw(self, data: bytes) -> ChunkBuilder:
        """Append the encoded size and data of a fragment. Returns the builder."""
        self._payload += data
        self._count += 1
        return self

    def drop_packet(self) -> ChunkBuilder:
        """End the chunk like a writer that ran out of memory. Returns the builder."""
        return self.add_raw(DROP_SENTINEL)

    @property
    def payload(self) -> bytes:
        """The payload: the fragments with their sizes."""
        return bytes(self._payload)

    def chunk(self, count: int | None = None) -> bytes:
        """Return header and payload; `count` overrides the number of fragments."""
        packets = (self._count if count is None else count) | self.flags << _FLAGS_SHIFT
        return struct.pack("<IHH", self.chunk_id, self.writer_id, packets) + self.payload

    def page(self, page_size: int = 4096, state: int = CHUNK_COMPLETE) -> bytes:
        """Return a page that contains only this chunk.

        Raises:
            ValueError: The chunk is larger than the page.
        """
        header = struct.pack("<II", LAYOUT_DIV1 << _LAYOUT_SHIFT | state, 0)
        page = header + self.chunk()
        if len(page) > page_size:
            raise ValueError(f"{len(page)} bytes don't fit into a page of {page_size}")
        return page.ljust(page_size, b"\0")


def chunk_to_move(page: int, target_buffer: int, chunk: int = 0) -> bytes:
    """Return a field of CommitDataRequest that commits a chunk."""
    return blob(1, number(1, page) + number(2, chunk) + number(3, target_buffer))


def chunk_to_patch(
    target_buffer: int,
    writer_id: int,
    chunk_id: int,
    patches: list[tuple[int, bytes]],
    *,
    has_more: bool = False,
) -> bytes:
    """Return a field of CommitDataRequest that patches a committed chunk.

    Args:
        target_buffer: Id of the buffer of the chunk.
        writer_id: Id of the chunk's writer.
        chunk_id: Id of the chunk.
        patches: (offset in the payload, bytes).
        has_more: Whether more patches for the same chunk follow.
    """
    body = number(1, target_buffer) + number(2, writer_id) + number(3, chunk_id)
    for offset, data in patches:
        body += blob(4, number(1, offset) + blob(2, data))
    return blob(2, body + (number(5, 1) if has_more else b""))


def flush_done(request_id: int) -> bytes:
    """Return a field of CommitDataRequest that acknowledges a flush."""
    return number(3, request_id)
