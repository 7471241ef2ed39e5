"""A producer that writes its shared memory by hand, byte by byte.

It enforces no rule of the shared memory ABI, so that callers can break each rule. The only
message that it sends on its own is the acknowledgement of flushes.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass

from tests.conformance.differential.connection import Connection
from tests.conformance.differential.wire import blob, blobs, last_number, number

PAGE = 4096
PAGES = 16
CHUNKS = {1: 1, 2: 2, 3: 4, 4: 7, 5: 14}
"""Chunks of a page, by its layout."""

BEING_WRITTEN, COMPLETE = 1, 3
FIRST_CONTINUES, LAST_CONTINUES, NEEDS_PATCHING = 1, 2, 4


@dataclass(frozen=True)
class Chunk:
    """A chunk in shared memory: the fields of its header, and its payload."""

    writer: int
    chunk: int
    count: int
    flags: int
    payload: bytes

    def header(self) -> bytes:
        """Return the eight bytes of the chunk header."""
        return struct.pack("<IHH", self.chunk, self.writer, self.count | self.flags << 10)


def chunk_size(layout: int) -> int:
    """Return the size of each chunk of a page with this layout, including the chunk header."""
    return (PAGE - 8) // CHUNKS[layout] & ~3


class Producer:
    """A connected producer with one data source; the producer's name is also the source's.

    Args:
        path: Path of the producer socket.
        name: Name of the producer and of its data source.
        scraping: Whether the service may scrape the producer's memory.
    """

    def __init__(self, path: str, name: str, *, scraping: bool) -> None:
        self.name = name
        self.targets: list[int] = []
        self.memory: mmap.mmap | None = None
        self.connection = Connection(path, "ProducerPort")
        request = number(1, PAGE) + number(2, PAGE * PAGES) + blob(3, name)
        self.connection.call("InitializeConnection", request + number(4, 1 if scraping else 2))
        self._commands = self.connection.send("GetAsyncCommand")
        self.connection.call("RegisterDataSource", blob(1, blob(1, name)))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
        if self.memory is not None:
            self.memory.close()
            self.memory = None

    def sync(self) -> None:
        """Wait until the service has handled all requests; then handle the service's commands."""
        self.connection.call("Sync")
        self.handle_commands()

    def handle_commands(self) -> None:
        """Handle the commands of the service that have arrived."""
        while self.connection.has_reply(self._commands):
            self._handle(self.connection.next_of_stream(self._commands)[2])

    def wait_for_memory(self) -> None:
        """Handle the service's commands until one of them passes the shared memory."""
        while self.memory is None:
            self._handle(self.connection.next_of_stream(self._commands)[2])

    def wait_for_flush(self) -> None:
        """Wait for the flush request of the service and acknowledge it."""
        while not self._handle(self.connection.next_of_stream(self._commands)[2]):
            pass

    def _handle(self, command: bytes) -> bool:
        if blobs(command, 3):
            self._map(self.connection.received_fds.pop(0))
        for setup in blobs(command, 6):
            self.targets.append(last_number(blobs(setup, 2)[0], 2))
        flushes = blobs(command, 5)
        for flush in flushes:
            self.connection.send("CommitData", number(3, last_number(flush, 2)), reply=False)
        return bool(flushes)

    def _map(self, fd: int) -> None:
        self.memory = mmap.mmap(fd, 0)
        os.close(fd)

    # Methods that read and write pages of the shared memory.

    def page_header(self, page: int) -> int:
        """Return the header word of a page: its layout and the states of its chunks."""
        assert self.memory is not None
        return int(struct.unpack_from("<I", self.memory, page * PAGE)[0])

    def set_page_header(self, page: int, word: int) -> None:
        """Replace the header word of a page."""
        assert self.memory is not None
        struct.pack_into("<I", self.memory, page * PAGE, word)

    def set_state(self, page: int, index: int, layout: int, state: int) -> None:
        """Set the layout of a page and the state of one of its chunks."""
        word = self.page_header(page) & ~(3 << 2 * index) & 0x0FFFFFFF
        self.set_page_header(page, word | state << 2 * index | layout << 28)

    def is_free(self, page: int) -> bool:
        """Return whether no chunk of a page is in use."""
        return self.page_header(page) & 0x0FFFFFFF == 0

    def write_chunk(self, page: int, index: int, layout: int, chunk: Chunk) -> None:
        """Write the header and the payload of a chunk; cut the payload to the chunk's size."""
        assert self.memory is not None
        size = chunk_size(layout)
        at = page * PAGE + 8 + index * size
        payload = chunk.payload[: size - 8]
        self.memory[at : at + size] = chunk.header() + payload.ljust(size - 8, b"\0")

    # Methods that send requests to the service.

    def commit(self, moves: bytes = b"", patches: bytes = b"") -> None:
        """Send a CommitData request without waiting for it."""
        self.connection.send("CommitData", moves + patches, reply=False)


def move(
    page: int, index: int, target: int, data: bytes | None = None, *, part: bool = False
) -> bytes:
    """Return an encoded entry of CommitDataRequest.chunks_to_move.

    `part` says that `data` is only a part of the chunk.
    """
    entry = number(1, page) + number(2, index) + number(3, target)
    if data is not None:
        entry += blob(4, data)
    return blob(1, entry + (number(5, 1) if part else b""))


def patch(
    target: int, writer: int, chunk: int, patches: list[tuple[int, bytes]], *, more: bool
) -> bytes:
    """Return an encoded entry of CommitDataRequest.chunks_to_patch."""
    entry = number(1, target) + number(2, writer) + number(3, chunk)
    entry += b"".join(blob(4, number(1, at) + blob(2, data)) for at, data in patches)
    return blob(2, entry + number(5, int(more)))
