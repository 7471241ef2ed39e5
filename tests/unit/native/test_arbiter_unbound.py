"""Startup tracing: an arbiter has writers before the service is connected."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from stretto import _native
from tests.unit.native.pipeline import (
    BUFFER,
    METHODS,
    RemoteProducer,
    make_arbiter,
    make_table,
    numbers_of,
    packet,
    read_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE, PAGE_SIZE = 1 << 16, 4096
FIRST, SECOND = 1 << 16, 2 << 16


class Startup(RemoteProducer):
    """A producer that creates its arbiter before it is connected to the service."""

    def __init__(self) -> None:
        super().__init__(SIZE, PAGE_SIZE, bound=False)


@pytest.fixture
def startup() -> Iterator[Startup]:
    with Startup() as startup:
        yield startup


def write(arbiter: _native.Arbiter, target_buffer: int, *numbers: int) -> None:
    writer = _native.TraceWriter(arbiter, target_buffer)
    for number in numbers:
        assert writer.write(packet(number))
    writer.close()


def test_packets_written_before_the_connection_reach_the_buffer(startup: Startup) -> None:
    write(startup.arbiter, FIRST, 1, 2)
    startup.bind()
    startup.serve()
    assert numbers_of(read_all(startup.table)) == []
    startup.arbiter.bind_startup_target_buffer(1, BUFFER)
    write(startup.arbiter, FIRST, 3)
    startup.serve()
    assert numbers_of(read_all(startup.table)) == [1, 2, 3]


def test_chunks_of_a_reservation_without_buffer_are_discarded_and_freed(startup: Startup) -> None:
    for _ in range(SIZE // PAGE_SIZE):  # These packets fill the whole shared memory.
        write(startup.arbiter, FIRST, 1)
    startup.arbiter.bind_startup_target_buffer(1, 0)
    startup.bind()
    startup.serve()
    write(startup.arbiter, BUFFER, 2)  # This packet fits only if the service has freed the chunks.
    startup.serve()
    assert numbers_of(read_all(startup.table)) == [2]


def test_packets_that_do_not_fit_before_the_connection_are_dropped_and_counted(
    startup: Startup,
) -> None:
    writer = _native.TraceWriter(startup.arbiter, FIRST, _native.STALL_THEN_DROP)
    written = 0
    while writer.write(packet(1, 1000)):
        written += 1
    assert written < SIZE // 1000
    assert writer.packets_dropped == 1


def test_commits_contain_the_chunks_if_memory_is_emulated(startup: Startup) -> None:
    write(startup.arbiter, FIRST, 1)
    startup.arbiter.emulate(True)
    startup.bind()
    startup.arbiter.bind_startup_target_buffer(1, BUFFER)
    assert len(startup.receive()) > PAGE_SIZE  # The commit contains the chunk.
    write(startup.arbiter, FIRST, 2)
    assert len(startup.receive()) > PAGE_SIZE


def test_reservation_of_a_buffer_counts_as_live_writer(startup: Startup) -> None:
    assert startup.arbiter.open_buffer(SECOND)
    assert startup.arbiter.live_writers == 1
    startup.arbiter.close_buffer(SECOND)
    assert startup.arbiter.live_writers == 0


def test_forked_child_cannot_write_into_unbound_memory(startup: Startup) -> None:
    write(startup.arbiter, FIRST, 1)
    startup.bind()
    child = os.fork()
    if child == 0:
        try:
            writer = _native.TraceWriter(startup.arbiter, FIRST)
            startup.arbiter.bind_startup_target_buffer(1, BUFFER)
            os._exit(writer.write(packet(2)))
        finally:
            os._exit(2)
    assert os.waitpid(child, 0) == (child, 0)
    startup.serve()
    startup.arbiter.bind_startup_target_buffer(1, BUFFER)
    startup.serve()
    assert numbers_of(read_all(startup.table)) == [1]


def test_bind_of_a_bound_arbiter_is_an_error(startup: Startup) -> None:
    startup.bind()
    with pytest.raises(ValueError, match="is bound to a service already"):
        startup.bind()
    with pytest.raises(ValueError, match="is bound to a service already"):
        startup.arbiter.emulate(False)
    in_process = make_arbiter(make_table())
    with pytest.raises(ValueError, match="is bound to a service already"):
        in_process.bind(startup.queue, *METHODS)
    in_process.bind_startup_target_buffer(1, BUFFER)  # An in-process arbiter ignores this call.


def test_invalid_arguments_are_refused(startup: Startup) -> None:
    here, there = socket.socketpair()
    with here, there, pytest.raises(ValueError, match="no shared memory"):
        _native.Arbiter.unbound(here.fileno(), PAGE_SIZE)
    with pytest.raises(ValueError, match="reservation must be from 1 to 65535"):
        startup.arbiter.bind_startup_target_buffer(0, BUFFER)
    with pytest.raises(ValueError, match="target_buffer must be from 0 to 65535"):
        startup.arbiter.bind_startup_target_buffer(1, FIRST)
    for target in (FIRST + 1, 1 << 32, 1 << 80, -1, 0):
        with pytest.raises(ValueError, match="target_buffer must be from 1 to 65535"):
            _native.TraceWriter(startup.arbiter, target)
    with pytest.raises(TypeError, match="expected a SendQueue"):
        startup.arbiter.bind(startup.service, *METHODS)  # type: ignore[arg-type]
