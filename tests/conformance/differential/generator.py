"""Generates random sequences of producer operations, most of them valid.

A generator keeps a model of each writer (the next chunk id, an unfinished packet, pending
patches) to generate valid operations. It then changes some of them to invalid ones.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conformance.differential.producer import (
    CHUNKS,
    FIRST_CONTINUES,
    LAST_CONTINUES,
    NEEDS_PATCHING,
    chunk_size,
)
from tests.conformance.differential.session import Operation, Sequence
from tests.conformance.differential.wire import blob, varint

if TYPE_CHECKING:
    from collections.abc import Callable

FOR_TESTING = 900
SENTINEL = b"\xff\xff\xff\x7f"
RESERVED = (3, 10, 33, 35, 36, 50, 69, 79, 98, 124, 125)
"""Fields of TracePacket that only the service may write."""


@dataclass
class Writer:
    """The model of a trace writer: its unfinished packet, patches and chunks."""

    producer: int
    ident: int
    target: int
    next_chunk: int = 0
    rest: bytes = b""  # Rest of a packet that continues in the next chunk.
    owed: list[list[Any]] = field(default_factory=list)  # Patches that the writer must still send.
    sent: list[list[Any]] = field(default_factory=list)  # Sent chunks, oldest first.
    held: list[Any] | None = None  # Layout, slot and content of an uncommitted chunk.


class Generator:
    """Generates one sequence from a seed.

    Args:
        seed: Seed of the random generator.
        length: Number of generated operations; an operation may add further operations.
    """

    def __init__(self, seed: int, length: int = 27) -> None:
        self.random = random.Random(seed)
        self.length = length
        self.packets = 0
        self.made: Counter[str] = Counter()
        r = self.random
        count = r.choice((1, 1, 2))
        self.sequence = Sequence(
            buffers=[
                {"size_kb": r.choice((4, 4, 8, 16, 256)), "discard": r.random() < 0.25}
                for _ in range(count)
            ],
            producers=[
                {
                    "scraping": r.random() < 0.8,
                    "buffers": r.sample(range(count), r.randint(1, count)),
                }
                for _ in range(r.choice((1, 1, 2, 3)))
            ],
        )
        self.writers: list[Writer] = []
        for p, producer in enumerate(self.sequence.producers):
            for _ in range(r.randint(1, 3)):
                ident = len([w for w in self.writers if w.producer == p]) + 1
                first = r.choice((0, 0, 0, 5, 0xFFFF_FFFE))
                target = r.randrange(len(producer["buffers"]))
                self.writers.append(Writer(p, ident, target, first))

    def make(self) -> Sequence:
        """Generate the sequence of operations."""
        for writer in self.writers:
            if self.random.random() < 0.7:
                self._add(
                    "register_writer", p=writer.producer, writer=writer.ident, target=writer.target
                )
        for _ in range(self.length):
            kind = self.random.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
            step: Callable[[Generator], None] = getattr(Generator, "_" + kind)
            step(self)
        return self.sequence

    def _add(self, do: str, **arguments: Any) -> None:
        operation: Operation = {"do": do, **arguments}
        self.sequence.operations.append(operation)

    def _writer(self) -> Writer:
        return self.random.choice(self.writers)

    # Methods that generate packets and chunks.

    def _packet(self, most: int = 400) -> bytes:
        r = self.random
        self.packets += 1
        size = r.choice((0, 3, 20, 100, most)) if r.random() < 0.9 else r.randrange(most + 1)
        text = f"{self.packets:x}".encode()
        if r.random() < 0.03:
            return blob(r.choice(RESERVED), text)
        return blob(FOR_TESTING, text.ljust(size, b"."))

    def _layout(self) -> int:
        return self.random.choice((1, 1, 2, 3, 4, 5))

    def _fragments(self, writer: Writer, room: int) -> tuple[list[bytes], int]:
        """Return the packet fragments and the flags of the writer's next chunk."""
        r = self.random
        out, flags = [], 0
        if writer.rest:
            piece = writer.rest
            if r.random() < 0.3 and len(piece) > 3:
                piece = piece[: len(piece) // 2]
            out.append(piece)
            writer.rest = writer.rest[len(piece) :]
            flags |= FIRST_CONTINUES
            if writer.rest:
                return out, flags | LAST_CONTINUES
        for _ in range(r.choice((0, 1, 1, 2, 3, 5))):
            empty = r.random() < 0.08
            out.append(b"" if empty else self._packet())
        if r.random() < 0.3:
            packet = self._packet(700)
            cut = r.randint(0, len(packet) - 1)
            out.append(packet[:cut])
            writer.rest = packet[cut:]
            flags |= LAST_CONTINUES
        while sum(len(each) + 2 for each in out) > room and len(out) > 1:
            out.pop(-2)
        return out, flags

    def _chunk(self, writer: Writer, layout: int) -> list[Any]:
        fragments, flags = self._fragments(writer, chunk_size(layout) - 8)
        payload = b"".join(varint(len(each)) + each for each in fragments)
        if fragments and flags & LAST_CONTINUES and self.random.random() < 0.5:
            start = len(payload) - len(fragments[-1])
            if len(fragments[-1]) >= 4 and self.random.random() < 0.9:
                flags |= NEEDS_PATCHING
                offset = self.random.randint(start, len(payload) - 4)
                was = payload[offset : offset + 4]
                payload = payload[:offset] + b"\0\0\0\0" + payload[offset + 4 :]
                writer.owed.append(
                    [writer.target, writer.ident, writer.next_chunk, [[offset, was.hex()]], False]
                )
        chunk = [writer.ident, writer.next_chunk, len(fragments), flags, payload.hex()]
        writer.next_chunk = writer.next_chunk + 1 & 0xFFFF_FFFF
        return chunk

    def _bend(self, chunk: list[Any]) -> list[Any]:
        """Return the chunk with one random change; most of these changes break a rule."""
        r = self.random
        ident, number, count, flags, payload = chunk
        data = bytes.fromhex(payload)
        how = r.randrange(8)
        if how == 0:
            count = r.choice((0, count + 1, count + 7, 1023))
        elif how == 1:
            flags ^= r.choice((1, 2, 4, 3, 7, 8, 32))
        elif how == 2:
            data, count = data + SENTINEL, count + 1
        elif how == 3:
            data, count = data + b"\xff" * r.choice((3, 5, 12)), count + 1
        elif how == 4 and data:
            at = r.randrange(len(data))
            data = data[:at] + bytes([r.randrange(256)]) + data[at + 1 :]
        elif how == 5:
            ident = r.choice((0, 32767, 32768, 65535))
        elif how == 6:
            data = b"\x80\x80\x80\x80\x00" * r.choice((1, 2)) + data
            count += 1
        else:
            data = r.randbytes(r.choice((1, 10, 200)))
        return [ident, number, count, flags, data.hex()]

    def _commit_chunk(
        self, writer: Writer, chunk: list[Any], layout: int, patches: list[Any]
    ) -> None:
        writer.sent.append(chunk)
        del writer.sent[:-6]
        self._add(
            "commit",
            p=writer.producer,
            layout=layout,
            target=writer.target,
            chunk=chunk,
            patches=patches,
        )

    # Methods that add one kind of operation each.

    def _commit(self) -> None:
        """Commit the writer's next chunk; in most cases, also send the pending patches."""
        self.made["commit"] += 1
        writer, layout = self._writer(), self._layout()
        patches = []
        if writer.owed and self.random.random() < 0.6:
            patches, writer.owed = writer.owed, []
            self.made["patch in a commit"] += len(patches)
        self._commit_chunk(writer, self._chunk(writer, layout), layout, patches)

    def _commit_big(self) -> None:
        """Commit a chunk that fills a page; a few such chunks fill a small buffer."""
        self.made["commit that fills a page"] += 1
        writer = self._writer()
        packets = [self._packet(self.random.choice((1300, 2000, 3900))) for _ in range(3)]
        payload, count = b"", 0
        for packet in packets:
            if len(payload) + len(packet) + 2 <= 4080:
                payload += varint(len(packet)) + packet
                count += 1
        writer.rest = b""
        chunk = [writer.ident, writer.next_chunk, count, 0, payload.hex()]
        writer.next_chunk = writer.next_chunk + 1 & 0xFFFF_FFFF
        self._commit_chunk(writer, chunk, 1, [])

    def _commit_malformed(self) -> None:
        self.made["malformed chunk"] += 1
        writer, layout = self._writer(), self._layout()
        self._commit_chunk(writer, self._bend(self._chunk(writer, layout)), layout, [])

    def _commit_many(self) -> None:
        """Commit several chunks of one page, sometimes out of order."""
        self.made["commit of several chunks"] += 1
        writer, layout = self._writer(), self.random.choice((2, 3, 4))
        chunks = [
            self._chunk(writer, layout) for _ in range(self.random.randint(2, CHUNKS[layout]))
        ]
        if self.random.random() < 0.5:
            self.random.shuffle(chunks)
        self._add(
            "commit_many", p=writer.producer, layout=layout, target=writer.target, chunks=chunks
        )

    def _gap(self) -> None:
        """Skip one or two chunk ids; commit the skipped chunks later or never."""
        self.made["gap in chunk ids"] += 1
        writer = self._writer()
        layout = self._layout()
        skipped = [self._chunk(writer, layout) for _ in range(self.random.randint(1, 2))]
        self._commit_chunk(writer, self._chunk(writer, layout), layout, [])
        if self.random.random() < 0.6:
            self.made["chunk that comes late"] += 1
            self._commit_chunk(writer, skipped[0], layout, [])

    def _recommit(self) -> None:
        """Commit an already sent chunk again: unchanged, longer, shorter or with other flags."""
        writer = self._writer()
        if not writer.sent:
            return
        self.made["chunk committed again"] += 1
        r = self.random
        ident, number, count, flags, payload = r.choice(writer.sent)
        how = r.randrange(5)
        data = bytes.fromhex(payload)
        if how in (1, 4):
            packet = self._packet()
            data, count = data + varint(len(packet)) + packet, count + 1
        elif how == 2 and count:
            count -= 1
        elif how == 3:
            flags ^= r.choice((1, 2, 4))
        self._add(
            "commit", p=writer.producer, layout=1, target=writer.target,
            chunk=[ident, number, count, flags, data.hex()], patches=[],
        )  # fmt: skip

    def _wrong_buffer(self) -> None:
        self.made["commit to a wrong buffer"] += 1
        writer, layout = self._writer(), self._layout()
        chunk = self._chunk(writer, layout)
        target = self.random.choice((1 - writer.target, 7, 25_536))
        self._add(
            "commit", p=writer.producer, layout=layout, target=target, chunk=chunk, patches=[]
        )

    def _commit_data(self) -> None:
        """Send a chunk in one commit request, or a part now and the rest in a later request."""
        writer = self._writer()
        self.made["chunk in the request"] += 1
        chunk = self._chunk(writer, 3)
        if self.random.random() < 0.2:
            chunk = self._bend(chunk)
        part = self.random.random() < 0.6
        size = self.random.choice((len(chunk[4]) // 2, 1000, 1000, 4000))
        writer.sent.append(chunk)
        self._add(
            "commit_data",
            p=writer.producer,
            target=writer.target,
            chunk=chunk,
            part=part,
            size=size,
        )

    def _commit_nothing(self) -> None:
        self.made["commit of no chunk"] += 1
        r, writer = self.random, self._writer()
        page, index = r.choice(((0, 0), (15, 0), (16, 0), (3, 13), (3, 14), (2**31, 0)))
        self._add("commit_nothing", p=writer.producer, page=page, index=index, target=writer.target)

    def _patch(self) -> None:
        """Send a pending patch, or sometimes one that no chunk needs."""
        self.made["patch"] += 1
        r, writer = self.random, self._writer()
        if writer.owed and r.random() < 0.8:
            patches = [writer.owed.pop(0)]
            if r.random() < 0.2:
                patches[0] = [*patches[0][:4], True]
        else:
            number = r.choice([0, 999, *(each[1] for each in writer.sent)])
            offset = r.choice((0, 0, 1, 7, 30, 5000, 65_535, 2**31))
            data = r.choice(("80808000", "01000000", "85808000", "ff", "0102030405", ""))
            target = r.choice((writer.target, writer.target, writer.target, 1 - writer.target, 9))
            ident = r.choice((writer.ident, writer.ident, writer.ident, 0, 99, 40_000))
            each = [[offset, data]] * r.choice((1, 1, 1, 2, 0))
            patches = [[target, ident, number, each, r.random() < 0.2]]
        self._add("patch", p=writer.producer, patches=patches)

    def _register_writer(self) -> None:
        self.made["register writer"] += 1
        writer = self._writer()
        target = writer.target if self.random.random() < 0.8 else self.random.choice((1, 9))
        ident = (
            writer.ident if self.random.random() < 0.9 else self.random.choice((0, 32767, 40_000))
        )
        self._add("register_writer", p=writer.producer, writer=ident, target=target)

    def _unregister_writer(self) -> None:
        self.made["unregister writer"] += 1
        writer = self._writer()
        self._add("unregister_writer", p=writer.producer, writer=writer.ident)

    def _hold(self) -> None:
        """Write a chunk without a commit, so that the service's next scrape reads it."""
        self.made["chunk held for scraping"] += 1
        writer, layout = self._writer(), self.random.choice((1, 2, 3))
        if writer.held is None:
            chunk = self._chunk(writer, layout)
            writer.held = [writer.ident - 1 + 3 * (writer.producer % 2), layout, chunk]
        else:
            packet = self._packet(100)
            ident, number, count, flags, payload = writer.held[2]
            payload += (varint(len(packet)) + packet).hex()
            writer.held[2] = [ident, number, count + 1, flags, payload]
        slot, layout, chunk = writer.held
        complete = self.random.random() < 0.2
        self._add(
            "hold", p=writer.producer, slot=slot, layout=layout, chunk=chunk, complete=complete
        )

    def _commit_held(self) -> None:
        held = [writer for writer in self.writers if writer.held]
        if not held:
            return self._hold()
        self.made["commit of a held chunk"] += 1
        writer = self.random.choice(held)
        assert writer.held is not None
        slot, layout, _ = writer.held
        writer.held = None
        self._add("commit_held", p=writer.producer, slot=slot, layout=layout, target=writer.target)
        return None

    def _disconnect(self) -> None:
        self.made["disconnect"] += 1
        self._add("disconnect", p=self._writer().producer)

    def _connect(self) -> None:
        self.made["connect"] += 1
        writer = self._writer()
        writer.next_chunk, writer.rest, writer.owed = 0, b"", []
        self._add("connect", p=writer.producer)

    def _unregister_data_source(self) -> None:
        self.made["unregister data source"] += 1
        self._add("unregister_data_source", p=self._writer().producer)

    def _flush(self) -> None:
        self.made["flush"] += 1
        self._add("flush")

    def _read(self) -> None:
        self.made["read"] += 1
        self._add("read")

    def _stats(self) -> None:
        self.made["statistics"] += 1
        self._add("stats")

    def _clone(self) -> None:
        self.made["clone"] += 1
        self._add("clone")


KINDS = (
    ("commit", 10),
    ("commit_big", 3),
    ("commit_malformed", 2.5),
    ("commit_many", 2),
    ("gap", 2),
    ("recommit", 1.5),
    ("wrong_buffer", 1),
    ("commit_data", 2),
    ("commit_nothing", 1),
    ("patch", 3),
    ("register_writer", 1),
    ("unregister_writer", 1),
    ("hold", 3),
    ("commit_held", 1.8),
    ("disconnect", 1),
    ("connect", 1),
    ("unregister_data_source", 1),
    ("flush", 2),
    ("read", 2.5),
    ("stats", 1.5),
    ("clone", 1),
)
"""What is done, and how often."""
