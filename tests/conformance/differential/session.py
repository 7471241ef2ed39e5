"""Runs one sequence of operations against one service, and collects all observable results."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conformance.differential import producer as raw
from tests.conformance.differential.connection import TIMEOUT_S, Connection, DisconnectedError
from tests.conformance.differential.producer import Chunk, Producer
from tests.conformance.differential.wire import blob, blobs, fields, last_number, number

if TYPE_CHECKING:
    from collections.abc import Callable

Operation = dict[str, Any]


@dataclass
class Sequence:
    """The buffers and producers of a session, and the operations to run on them.

    Every value is plain JSON, so that a differing sequence can be stored and shortened.
    """

    buffers: list[dict[str, Any]]
    producers: list[dict[str, Any]]
    operations: list[Operation] = field(default_factory=list)

    def config(self, names: list[str]) -> bytes:
        """Return the encoded TraceConfig for producers with these names."""
        out = b""
        for buffer in self.buffers:
            policy = 2 if buffer["discard"] else 1
            out += blob(1, number(1, buffer["size_kb"]) + number(4, policy) + number(8, 1))
        for name, each in zip(names, self.producers, strict=True):
            for index in each["buffers"]:
                out += blob(2, blob(1, blob(1, name) + number(2, index)))
        builtin = b"".join(number(flag, 1) for flag in (1, 2, 3, 4))
        builtin += number(
            6, 2_000_000_000
        )  # Disables the periodic sync markers, which depend on the clock.
        return out + blob(20, builtin) + number(23, 1000)


class Session:
    """A tracing session, its consumer and its producers.

    Args:
        sockets: Paths of the service's producer socket and consumer socket.
        sequence: Buffers, producers and operations of the session.
        number: Number of the sequence, which makes the producers' names unique.
    """

    def __init__(self, sockets: tuple[str, str], sequence: Sequence, number: int) -> None:
        self.sockets = sockets
        self.sequence = sequence
        self.seen: list[Any] = []
        self.names = [f"p{number}.{i}" for i in range(len(sequence.producers))]
        self.consumer = Connection(sockets[1], "ConsumerPort")
        self.producers: list[Producer | None] = []
        self._latest: Producer | None = None
        self._before: dict[str, int] = {}
        self._offered = set(range(len(self.names)))  # Producers whose data source is registered.
        for name, each in zip(self.names, sequence.producers, strict=True):
            self.producers.append(Producer(sockets[0], name, scraping=each["scraping"]))

    def run(self) -> list[Any]:
        """Run all operations; return the result of each, and of the reads at the end."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            self.start()
            for operation in self.sequence.operations:
                handle: Callable[..., Any] = getattr(self, "do_" + operation["do"])
                arguments = {name: value for name, value in operation.items() if name != "do"}
                self.seen.append(handle(**arguments))
            self.seen.append(self.do_read())
            self.seen.append(self.do_stats())
            self.consumer.call("DisableTracing")
            self.seen.append(self.do_read())
            self.seen.append(self.do_stats())
            self.consumer.call("FreeBuffers")
        return self.seen

    def close(self) -> None:
        """Close all connections."""
        for producer in self.producers:
            if producer is not None:
                producer.close()
        self.consumer.close()

    def start(self) -> None:
        """Enable tracing; wait until every producer has its shared memory and buffer ids."""
        self.consumer.send("EnableTracing", blob(1, self.sequence.config(self.names)))
        for producer in self.producers:
            assert producer is not None
            producer.wait_for_memory()
            producer.sync()
        self._wait_for_producers(len(self.producers))
        self._before = {name: self.statistics()[name] for name in SERVICE_COUNTERS}

    # Methods that run operations of producers.

    def _of(self, index: int) -> Producer | None:
        """Return a producer, after the service has handled all requests of other producers."""
        producer = self.producers[index]
        if producer is not self._latest:
            self.settle()
            self._latest = producer
        return producer

    def settle(self) -> None:
        """Wait until the service has handled all requests of producers."""
        for producer in self.producers:
            if producer is not None and producer is self._latest:
                producer.sync()
        self._latest = None

    def _target(self, producer: Producer, target: int) -> int:
        """Return the global id of a buffer of the producer, or an id that no buffer has."""
        own = list(dict.fromkeys(producer.targets))
        return own[target] if 0 <= target < len(own) else 40_000 + target

    def do_commit(
        self, p: int, layout: int, target: int, chunk: list[Any], patches: list[Any] | None = None
    ) -> None:
        """Write a chunk into a free page; commit it, together with patches for other chunks."""
        producer = self._of(p)
        if producer is None:
            return
        page = next((i for i in range(8) if producer.is_free(i)), None)
        if page is None:
            producer.sync()
            page = next(i for i in range(8) if producer.is_free(i))
        producer.write_chunk(page, 0, layout, _chunk(chunk))
        producer.set_page_header(page, layout << 28 | raw.COMPLETE)
        moves = raw.move(page, 0, self._target(producer, target))
        producer.commit(moves, self._patches(producer, patches or []))

    def do_commit_many(self, p: int, layout: int, target: int, chunks: list[list[Any]]) -> None:
        """Commit several chunks of one page in one request, in the given order."""
        producer = self._of(p)
        if producer is None:
            return
        producer.sync()
        page = next(i for i in range(8) if producer.is_free(i))
        chunks = chunks[: raw.CHUNKS[layout]]
        for index, chunk in enumerate(chunks):
            producer.write_chunk(page, index, layout, _chunk(chunk))
            producer.set_state(page, index, layout, raw.COMPLETE)
        where = self._target(producer, target)
        producer.commit(b"".join(raw.move(page, i, where) for i in range(len(chunks))))

    def do_commit_data(self, p: int, target: int, chunk: list[Any], part: bool, size: int) -> None:
        """Send a chunk's bytes in the commit request, without shared memory."""
        producer = self._of(p)
        if producer is None:
            return
        described = _chunk(chunk)
        data = described.header() + described.payload.ljust(size, b"\0")
        producer.commit(raw.move(0, 0, self._target(producer, target), data, part=part))

    def do_commit_nothing(self, p: int, page: int, index: int, target: int) -> None:
        """Request the move of a chunk that isn't complete or doesn't exist."""
        producer = self._of(p)
        if producer is not None:
            producer.commit(raw.move(page, index, self._target(producer, target)))
            producer.sync()  # wait, because a later operation may write to the same chunk

    def do_patch(self, p: int, patches: list[Any]) -> None:
        """Send patches for chunks; some of the chunks are not committed."""
        producer = self._of(p)
        if producer is not None:
            producer.commit(b"", self._patches(producer, patches))

    def _patches(self, producer: Producer, patches: list[Any]) -> bytes:
        return b"".join(
            raw.patch(
                self._target(producer, target),
                writer,
                chunk,
                [(offset, bytes.fromhex(data)) for offset, data in each],
                more=more,
            )
            for target, writer, chunk, each, more in patches
        )

    def do_register_writer(self, p: int, writer: int, target: int) -> None:
        """Register a trace writer with its target buffer."""
        producer = self._of(p)
        if producer is not None:
            request = number(1, writer) + number(2, self._target(producer, target))
            producer.connection.send("RegisterTraceWriter", request, reply=False)

    def do_unregister_writer(self, p: int, writer: int) -> None:
        """Unregister a trace writer."""
        producer = self._of(p)
        if producer is not None:
            request = number(1, writer)
            producer.connection.send("UnregisterTraceWriter", request, reply=False)

    def do_hold(self, p: int, slot: int, layout: int, chunk: list[Any], complete: bool) -> None:
        """Write a chunk into the shared memory without a commit, so that a scrape reads it."""
        producer = self._of(p)
        if producer is not None:
            producer.sync()
            page, index = _place(slot, layout)
            producer.set_page_header(page, 0)
            producer.write_chunk(page, index, layout, _chunk(chunk))
            state = raw.COMPLETE if complete else raw.BEING_WRITTEN
            producer.set_state(page, index, layout, state)

    def do_commit_held(self, p: int, slot: int, layout: int, target: int) -> None:
        """Commit a chunk that `do_hold` has written."""
        producer = self._of(p)
        if producer is not None:
            page, index = _place(slot, layout)
            if producer.page_header(page):
                producer.set_state(page, index, layout, raw.COMPLETE)
            producer.commit(raw.move(page, index, self._target(producer, target)))
            producer.sync()
            producer.set_page_header(page, 0)

    def do_disconnect(self, p: int) -> None:
        """Disconnect a producer; wait until the service has noticed."""
        producer = self._of(p)
        if producer is None:
            return
        producer.sync()
        producer.close()
        self.producers[p] = None
        self._latest = None
        left = sum(each is not None for each in self.producers)
        self._wait_for_producers(left)

    def _wait_for_producers(self, count: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while self.statistics()["producers_connected"] != count:
            if time.monotonic() > deadline:
                raise DisconnectedError(f"there never are {count} producers")

    def do_connect(self, p: int) -> None:
        """Connect a disconnected producer again, with a new id."""
        if self.producers[p] is not None:
            return
        self.settle()
        each = self.sequence.producers[p]
        producer = Producer(self.sockets[0], self.names[p], scraping=each["scraping"])
        self.producers[p] = producer
        self._offered.add(p)
        producer.wait_for_memory()
        producer.sync()

    def do_unregister_data_source(self, p: int) -> None:
        """Unregister the producer's data source, which stops its instances."""
        producer = self._of(p)
        if producer is not None:
            request = blob(1, self.names[p])
            self._offered.discard(p)
            producer.connection.send("UnregisterDataSource", request, reply=False)

    # Methods that run operations of consumers.

    def do_flush(self) -> bool:
        """Flush all data sources; every producer acknowledges the flush."""
        self.settle()
        request = self.consumer.send("Flush", number(1, 10_000))
        for index, producer in enumerate(self.producers):
            if producer is not None and index in self._offered:
                producer.wait_for_flush()
        return self.consumer.next_of_stream(request)[0]

    def do_read(self) -> list[Any]:
        """Read the buffers until they are empty; return the packets."""
        self.settle()
        return read_packets(self.consumer)

    def do_stats(self) -> dict[str, Any]:
        """Return the trace statistics."""
        self.settle()
        return self.statistics()

    def statistics(self) -> dict[str, Any]:
        """Return the trace statistics; subtract what earlier sessions added to service counters."""
        return self._statistics_of(self.consumer)

    def _statistics_of(self, consumer: Connection) -> dict[str, Any]:
        stats = parse_stats(b"".join(blobs(consumer.call("GetTraceStats")[1], 1)))
        for name, value in self._before.items():
            stats[name] -= value
        return stats

    def do_clone(self) -> list[Any]:
        """Clone the session from a second consumer; return the clone's packets and statistics."""
        self.settle()
        state = b"".join(blobs(b"".join(self.consumer.stream("QueryServiceState")), 1))
        sessions = [last_number(each, 1) for each in blobs(state, 6)]
        other = Connection(self.sockets[1], "ConsumerPort")
        try:
            request = other.send("CloneSession", number(1, sessions[-1]))
            for index, producer in enumerate(self.producers):
                if producer is not None and index in self._offered:
                    producer.wait_for_flush()
            reply = other.next_of_stream(request)
            cloned = last_number(reply[2], 1)
            packets = read_packets(other)
            stats = self._statistics_of(other)
            other.call("FreeBuffers")
        finally:
            other.close()
        return [cloned, packets, stats]


def _chunk(values: list[Any]) -> Chunk:
    writer, chunk, count, flags, payload = values
    return Chunk(writer, chunk, count, flags, bytes.fromhex(payload))


def _place(slot: int, layout: int) -> tuple[int, int]:
    """Return page and index of an uncommitted chunk; commits use other pages."""
    return 8 + slot, slot % raw.CHUNKS[layout]


# The tables give names to the field numbers of the statistics.

BUFFER_STATS = {
    1: "bytes_written",
    2: "chunks_written",
    3: "chunks_overwritten",
    4: "write_wrap_count",
    5: "patches_succeeded",
    6: "patches_failed",
    7: "readaheads_succeeded",
    8: "readaheads_failed",
    9: "abi_violations",
    10: "chunks_rewritten",
    11: "chunks_committed_out_of_order",
    12: "buffer_size",
    13: "bytes_overwritten",
    14: "bytes_read",
    15: "padding_bytes_written",
    16: "padding_bytes_cleared",
    17: "chunks_read",
    18: "chunks_discarded",
    19: "trace_writer_packet_loss",
    20: "chunks_relocated",
}
STATS = {
    2: "producers_connected",
    3: "producers_seen",
    4: "data_sources_registered",
    5: "data_sources_seen",
    6: "tracing_sessions",
    7: "total_buffers",
    8: "chunks_discarded",
    9: "patches_discarded",
    10: "invalid_packets",
    12: "flushes_requested",
    13: "flushes_succeeded",
    14: "flushes_failed",
    15: "final_flush_outcome",
}


def parse_stats(data: bytes) -> dict[str, Any]:
    """Decode TraceStats to a dictionary; missing counters are 0."""
    out: dict[str, Any] = dict.fromkeys(STATS.values(), 0)
    out["buffers"] = []
    writers = []
    for field_number, value in fields(data):
        if field_number in STATS:
            out[STATS[field_number]] = value
        elif field_number == 1:
            assert isinstance(value, bytes)
            buffer = dict.fromkeys(BUFFER_STATS.values(), 0)
            buffer.update({BUFFER_STATS[n]: int(v) for n, v in fields(value)})
            out["buffers"].append(buffer)
        elif field_number == 18:
            assert isinstance(value, bytes)
            writers.append(
                sorted((n, v if isinstance(v, int) else v.hex()) for n, v in fields(value))
            )
    out["writer_stats"] = sorted(writers)
    return out


TIMESTAMP_CLOCK_ID = (
    58  # A field that Perfetto v58 and Stretto write into service packets; v56 doesn't.
)
SERVICE_COUNTERS = ("chunks_discarded", "patches_discarded")
SERVICE = 1  # Sequence id of the packets that the service writes.


def read_packets(consumer: Connection) -> list[Any]:
    """Send one ReadBuffers request; return descriptions of the packets."""
    out, packet = [], b""
    for reply in consumer.stream("ReadBuffers"):
        for piece in blobs(reply, 2):
            packet += b"".join(blobs(piece, 1))
            if last_number(piece, 2):
                out.append(describe_packet(packet))
                packet = b""
    return out


def describe_packet(packet: bytes) -> list[Any]:
    """Describe a packet for the comparison of services.

    Of a packet that the service itself wrote, return the numbers of its fields. Of a producer's
    packet, return its bytes and the fields that the service added.
    """
    parts = list(fields(packet))
    trusted: dict[int, Any] = {}
    while parts and parts[-1][0] in (3, 10, 79, 98, 42):
        name, value = parts.pop()
        trusted[name] = value
        if name == 3:
            break
    if trusted.get(10, last_number(packet, 10)) == SERVICE:
        return ["service", sorted(n for n, _ in fields(packet) if n != TIMESTAMP_CLOCK_ID)]
    size = len(packet) - len(b"".join(number(n, int(v)) for n, v in trusted.items()))
    return [
        packet[:size].hex(),
        trusted.get(10),
        trusted.get(3),
        trusted.get(79),
        trusted.get(42, 0),
    ]
