"""Native types leak no references, memory or descriptors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

import pytest

import stretto
from stretto import _native
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.recorded_events import record
from tests.unit.native.pipeline import (
    BUFFER,
    RemoteProducer,
    make_arbiter,
    make_endpoint,
    make_table,
    packet,
    read_all,
    sealed_memory,
)


def use_everything() -> None:
    table = make_table()
    table.clone(BUFFER, 2)
    writer = _native.TraceWriter(make_arbiter(table), BUFFER)
    for number in range(300):
        writer.write(packet(number))
    writer.flush()
    read_all(table)
    table.stats(BUFFER)
    table.visit_writers(BUFFER, lambda *_: None)
    with RemoteProducer() as remote:
        other = _native.TraceWriter(remote.arbiter, target_buffer=BUFFER, policy=_native.DROP)
        for number in range(3000):
            other.write(packet(number))
        remote.arbiter.flush()
        remote.serve()
        remote.endpoint.scrape([BUFFER])
        remote.endpoint.stats()
        thread = _native.IpcThread(remote.client.fileno(), remote.queue, lambda: False)
        thread.start()
        remote.service.send(b"x")
        thread.stop()
    _native.tokenize(b"\x0a\x00")


def fail_everywhere() -> None:
    table = make_table()
    endpoint = make_endpoint(table)
    fd = sealed_memory(5000)
    attempts: list[Callable[[], object]] = [
        lambda: table.create(BUFFER, 4096, _native.RING),
        lambda: table.create(0, 4096, _native.RING),
        lambda: table.create(2, 1 << 60, _native.RING),
        lambda: table.recover(2, fd),
        lambda: table.stats(9),
        lambda: table.visit_writers(9, print),
        lambda: _native.Readback(None),  # type: ignore[arg-type]
        lambda: endpoint.attach_fd(fd, 5000, 4096),
        lambda: endpoint.scrape([1, 0]),
        lambda: endpoint.commit(None),  # type: ignore[arg-type]
        lambda: _native.Arbiter.in_process(endpoint, 4097, 4096),
        lambda: _native.Arbiter.unbound(fd, 4096),
        lambda: _native.SendQueue(fd).push(bytes(200000)),
        lambda: _native.TraceWriter(None, 1),  # type: ignore[arg-type]
        lambda: _native.IpcThread(fd, fd, print),  # type: ignore[arg-type]
        lambda: _native.add_pending_call(None),  # type: ignore[arg-type]
    ]
    for attempt in attempts:
        with pytest.raises((ValueError, TypeError, MemoryError, OSError)):
            attempt()
    os.close(fd)


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def type_references() -> list[int]:
    types = [
        _native.BufferTable,
        _native.Readback,
        _native.ProducerEndpointCore,
        _native.SendQueue,
        _native.IpcThread,
        _native.Arbiter,
        _native.TraceWriter,
    ]
    return [sys.getrefcount(t) for t in types]


@pytest.mark.parametrize("use", [use_everything, fail_everywhere])
def test_repeated_use_leaks_no_memory_references_or_descriptors(use: Callable[[], None]) -> None:
    for _ in range(20):
        use()
    gc.collect()
    objects, references = len(gc.get_objects()), type_references()
    memory, descriptors = resident_bytes(), open_descriptors()
    for _ in range(100):
        use()
    gc.collect()
    assert type_references() == references
    assert len(gc.get_objects()) <= objects + 20
    expect_new_descriptors(descriptors, 0)
    assert resident_bytes() < memory + (8 << 20)


def test_arguments_keep_their_reference_counts() -> None:
    table = make_table()
    endpoint = make_endpoint(table)
    data = packet(1)
    before = sys.getrefcount(table), sys.getrefcount(endpoint), sys.getrefcount(data)
    arbiter = _native.Arbiter.in_process(endpoint, 65536, 4096)
    writer = _native.TraceWriter(arbiter, BUFFER)
    for _ in range(100):
        writer.write(data)
        endpoint.commit(data)
        _native.Readback(table)
        _native.tokenize(data)
    del writer, arbiter
    assert (sys.getrefcount(table), sys.getrefcount(endpoint), sys.getrefcount(data)) == before


class Indexed(_native.IndexedMessage):
    __slots__ = ()


_native.close_decoder_class(Indexed)
WRITER = _native.make_writer_class("Writer", [], {"__slots__": ()})
CATEGORY = stretto.Category("test.leaks")

RECYCLED: dict[str, Callable[[], object]] = {
    "slice": lambda: CATEGORY.slice("a"),
    "field": lambda: next(_native.Decoder(b"\x08\x01")),
    "indexed message": lambda: Indexed(b"\x08\x01"),
    "writer": lambda: WRITER(),
    "plain writer": lambda: _native.MessageWriter(),
    "nested writer": lambda: _native.MessageWriter().nested(1, WRITER),
}


@pytest.mark.parametrize("make", RECYCLED.values(), ids=RECYCLED)
# The free list holds more than 1 and fewer than 100 objects.
@pytest.mark.parametrize("alive", [1, 100])
def test_each_recycled_object_holds_one_reference_to_its_type(
    make: Callable[[], object], alive: int
) -> None:
    with record():
        kind = type(make())
        before = sys.getrefcount(kind)
        for _ in range(1000 // alive):
            held = [make() for _ in range(alive)]
            assert sys.getrefcount(kind) == before + len(held)
            del held
        assert sys.getrefcount(kind) == before
