"""A program with one or several producers, for tests of the robustness of a service.

    python -m tests.support.producer_process ROLE ADDRESS [arguments]

A role is a function of this module, such as `flood`. The program prints reports for the test as
lines of JSON, and runs until the end of its standard input or until the test kills it. The events
are instants `event(index, number)`; on each track `index`, the numbers count up from 0.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import mmap
import os
import random
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from stretto import _native
from stretto.base.memory import MEMFD_NAME
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.protos.config import DataSourceDescriptor
from stretto.protos.ipc import CommitDataRequest, RegisterTraceWriterRequest
from stretto.protos.trace import TestEvent, TracePacket, TrackEvent
from stretto.service.output.packet_encoder import number as number_field
from stretto.testing.chunk_builder import ChunkBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.protos.config import DataSourceConfig

TIMEOUT_MS = 60_000
PR_SET_PDEATHSIG = 1
TRACK = 1000
"""Uuid of the track with index 0."""


def event(index: int, number: int, size: int = 0) -> bytes:
    """Return an instant whose name is `number` in eight digits and `size` dots."""
    track_event = TrackEvent(
        type=3, name=f"{number:08}" + "." * size, categories=["c"], track_uuid=TRACK + index
    )
    packet = TracePacket(timestamp=_native.boottime_ns(), track_event=track_event)
    if not number:
        packet.sequence_flags = 1
    return packet.encode()


def write_report(**facts: Any) -> None:
    """Print a report, which the test reads."""
    os.write(1, json.dumps(facts).encode() + b"\n")


class Requests:
    """Reads stdin: a line requests a report, the end of input ends the role."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self.ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while byte := os.read(0, 1):
            if byte == b"\n":
                self.requested.set()
        self.ended.set()


class Producer:
    """A connected producer, ready to write when the constructor returns.

    Args:
        address: Address of the service's producer socket.
        source: Name of the data source.
        hints: Additional fields of ProducerHints.
    """

    def __init__(self, address: str, source: str = "ds", **hints: Any) -> None:
        self.source = source
        self.arbiter: _native.Arbiter | None = None
        self.target = 0
        self.writers: list[_native.TraceWriter] = []
        self.client = self.make_client(address, ProducerHints(source, **hints))
        self.client.connect_and_wait(TIMEOUT_MS)

    def make_client(self, address: str, hints: ProducerHints) -> ProducerIPCClient:
        return ProducerIPCClient.connect(address, self, hints, TIMEOUT_MS)

    def writer(self, policy: int = _native.STALL) -> _native.TraceWriter:
        assert self.arbiter is not None
        self.writers.append(_native.TraceWriter(self.arbiter, self.target, policy))
        return self.writers[-1]

    # --- Methods that the service calls

    def on_connect(self) -> None:
        self.client.register_data_source(DataSourceDescriptor(name=self.source))

    def on_disconnect(self) -> None: ...

    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        self.arbiter = arbiter

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self.target = config.target_buffer

    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...

    def stop_data_source(self, instance_id: int) -> None: ...

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None: ...

    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        # This thread may not flush the writers of other threads. That isn't needed: the service
        # scrapes all open chunks.
        if self.arbiter is not None:
            self.arbiter.flush()
        self.client.notify_flush_complete(request_id)


# --- The role `crowd`: many producers, some of which are killed


class Counts:
    """Numbers of written events of child processes, in memory shared with the children."""

    def __init__(self, children: int) -> None:
        self._memory = mmap.mmap(-1, 8 * children)

    def set(self, index: int, count: int) -> None:
        self._memory[8 * index : 8 * index + 8] = count.to_bytes(8, "little")

    def get(self, index: int) -> int:
        return int.from_bytes(self._memory[8 * index : 8 * index + 8], "little")


def write_as_child(address: str, index: int, counts: Counts, events: int) -> None:
    """Write `events` events, store their number in `counts`, and wait to be killed."""
    producer = Producer(address)
    writer = producer.writer()
    for number in range(events):
        assert writer.write(event(index, number, number % 100))
        counts.set(index, number + 1)
    while True:
        signal.pause()


def fork_child(function: Callable[[], object]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        function()
    finally:
        os._exit(1)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def crowd(address: str, children: str, events: str) -> None:
    """Run many producers, kill every third while it writes, and report their event counts."""
    total, each = int(children), int(events)
    counts = Counts(total)
    pids = [
        fork_child(lambda index=index: write_as_child(address, index, counts, each))
        for index in range(total)
    ]
    rng = random.Random(1)
    fates = {index: rng.randrange(1, each) for index in range(0, total, 3)}
    while any(counts.get(index) < each for index in range(total) if index % 3) or fates:
        for index in [index for index, fate in fates.items() if counts.get(index) >= fate]:
            kill(pids[index])
            del fates[index]
        time.sleep(0.001)  # sleep: the child processes write in this time
    write_report(written=[counts.get(index) for index in range(total)], pids=pids)
    Requests().ended.wait()
    for index, pid in enumerate(pids):
        if index % 3:
            kill(pid)


# --- The role `flood`: a producer that writes continuously


def flood(address: str, source: str, index: str, shm_size: str, pause_us: str) -> None:
    """Write continuously; drop events that don't fit into the shared memory.

    Reports the size of the memory at the start, the number of events after each line of input,
    and the numbers of written and dropped events at the end of input.
    """
    producer = Producer(address, source, shm_size=int(shm_size))
    writer = producer.writer(_native.DROP)
    assert producer.arbiter is not None
    stdin = Requests()
    write_report(size=producer.arbiter.size)
    prefix, suffix = event(int(index), 1, 100).split(b"00000001")
    writer.write(event(int(index), 0, 100))
    number, pause = 1, int(pause_us) / 1e6
    while not stdin.ended.is_set():
        for _ in range(100):
            writer.write(prefix + b"%08d" % number + suffix)
            number += 1
        if pause:
            time.sleep(pause)  # sleep: limits the event rate
        if stdin.requested.is_set():
            stdin.requested.clear()
            write_report(number=number)
    writer.flush()
    synced = threading.Event()
    producer.client.sync(synced.set)
    assert synced.wait(TIMEOUT_MS / 1000)
    write_report(number=number, written=writer.packets_written, dropped=writer.packets_dropped)
    signal.pause()


# --- The roles `layouts` and `geometry`: page sizes and layouts


class RawMemoryClient(ProducerIPCClient):
    """A client whose `memory` gives tests direct access to the shared memory."""

    __slots__ = ("memory", "page_size")

    def _on_setup_tracing(self, setup: Any) -> None:
        self.page_size = setup.shared_buffer_page_size_kb * 1024
        super()._on_setup_tracing(setup)
        with open("/proc/self/maps") as maps:
            (line,) = (line for line in maps if MEMFD_NAME in line)
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        self.memory = (ctypes.c_uint8 * (end - start)).from_address(start)


class RawMemoryProducer(Producer):
    """A producer whose shared memory a test can read and write."""

    def make_client(self, address: str, hints: ProducerHints) -> ProducerIPCClient:
        return RawMemoryClient.connect(address, self, hints, TIMEOUT_MS)

    @property
    def memory(self) -> Any:
        assert isinstance(self.client, RawMemoryClient)
        return self.client.memory

    @property
    def page_size(self) -> int:
        assert isinstance(self.client, RawMemoryClient)
        return self.client.page_size

    def layouts(self) -> set[int]:
        """Return the set of the layouts of all pages: 1 to 5, or 0 for a page without a layout."""
        pages = range(0, len(self.memory), self.page_size)
        return {self.memory[page + 3] >> 4 & 7 for page in pages}


def write_long_event(writer: _native.TraceWriter, index: int, number: int, size: int) -> None:
    """Write an event that spans several chunks; its annotation is appended in parts."""
    with _native.MessageWriter(writer) as packet:
        packet.append_varint(8, _native.boottime_ns())
        with packet.nested(11, _native.MessageWriter) as track_event:
            track_event.append_varint(9, 3)
            track_event.append_varint(11, TRACK + index)
            track_event.append_bytes(22, "c")
            with track_event.nested(4, _native.MessageWriter) as annotation:
                annotation.append_bytes(10, "long")
                for _ in range(4):
                    with annotation.nested(12, _native.MessageWriter) as element:
                        element.append_bytes(6, "y" * (size // 4))
            track_event.append_bytes(23, f"{number:08}")


def layouts(address: str, page_size: str) -> None:
    """Add writers until every page layout has been in use."""
    size = int(page_size)
    producer = RawMemoryProducer(address, page_size=size, shm_size=16 * size)
    seen: set[int] = set()
    numbers: list[int] = []
    for writers in (1, 6, 12, 20, 40):
        while len(producer.writers) < writers:
            producer.writer()
            numbers.append(0)
        for turn in range(20):
            for index, writer in enumerate(producer.writers):
                if turn % 5 == 4:
                    write_long_event(writer, index, numbers[index], size // 3)
                else:
                    writer.write(event(index, numbers[index], turn * 7))
                numbers[index] += 1
            seen |= producer.layouts()
    write_report(layouts=sorted(seen), page_size=producer.page_size, numbers=numbers)
    signal.pause()


def geometry(address: str, page_size: str, shm_size: str) -> None:
    """Request sizes of pages and shared memory; report the sizes that the service chose."""
    producer = RawMemoryProducer(address, page_size=int(page_size), shm_size=int(shm_size))
    producer.writer().write(event(0, 0))
    write_report(page_size=producer.page_size, shm_size=len(producer.memory))
    signal.pause()


# --- The role `hostile`: a malicious producer


def spoofed(number: int) -> bytes:
    """Return a packet that claims the identity of another producer."""
    trusted = number_field(3, 4242) + number_field(10, 2) + number_field(79, 1)
    return TracePacket(for_testing=TestEvent(str=f"spoof {number}")).encode() + trusted


def rewrite_for_ever(producer: RawMemoryProducer) -> None:
    """Write random bytes and valid pages into the shared memory, without end."""
    rng, size = random.Random(2), producer.page_size
    pages = [
        ChunkBuilder(writer, 0).add(spoofed(writer)).add(event(99, writer)).page(size)
        for writer in range(1, 9)
    ]
    for chunk_id in itertools.count():
        page = rng.randrange(len(producer.memory) // size) * size
        ctypes.memmove(ctypes.addressof(producer.memory) + page, rng.choice(pages), size)
        producer.memory[page + 8 : page + 12] = (chunk_id // 8).to_bytes(4, "little")
        for _ in range(rng.randrange(20)):
            producer.memory[page + rng.randrange(size)] = rng.randrange(256)


def hostile_request(rng: random.Random, pages: int) -> CommitDataRequest:
    """Return a request with random moves, patches and flush ids, most of them invalid."""
    patch = CommitDataRequest.ChunkToPatch.Patch(offset=rng.randrange(60), data=b"evil")
    return CommitDataRequest(
        chunks_to_move=[
            CommitDataRequest.ChunksToMove(
                page=page, chunk=rng.choice([0, 0, 0, 5, 99]), target_buffer=rng.randrange(6)
            )
            for page in range(pages + 1)
        ],
        chunks_to_patch=[
            CommitDataRequest.ChunkToPatch(
                target_buffer=rng.randrange(1, 4), writer_id=writer, chunk_id=chunk, patches=[patch]
            )
            for writer in range(1, 4)
            for chunk in range(20)
        ],
        flush_request_id=rng.choice([0, 1, 2, 1 << 60]),
    )


def hostile(address: str, requests: str) -> None:
    """Rewrite the shared memory while the service reads it, and send invalid requests."""
    producer = RawMemoryProducer(address, page_size=4096, shm_size=1 << 17)
    client, rng = producer.client, random.Random(3)
    threading.Thread(target=rewrite_for_ever, args=(producer,), daemon=True).start()
    for writer in range(1, 40):
        request = RegisterTraceWriterRequest(trace_writer_id=writer, target_buffer=writer % 5)
        client._invoke("RegisterTraceWriter", request)
    for _ in range(int(requests)):
        client._invoke("CommitData", hostile_request(rng, 32))
        synced = threading.Event()
        client.sync(synced.set)
        assert synced.wait(TIMEOUT_MS / 1000)
    write_report(pid=os.getpid())
    signal.pause()


ROLES = {
    "crowd": crowd,
    "flood": flood,
    "geometry": geometry,
    "hostile": hostile,
    "layouts": layouts,
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
