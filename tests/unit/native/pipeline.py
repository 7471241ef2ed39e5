"""A small service and producer made of the native types, and a simple decoder of traces."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from stretto import _native

BUFFER = 1
PRODUCER = 7
UID = 1000
PID = 4321
TIMESTAMP = 8
"""Field of TracePacket.timestamp, in which the tests number their packets."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def packet(number: int, size: int = 0) -> bytes:
    """Return an encoded TracePacket with a timestamp and `size` bytes of a test event."""
    return field(TIMESTAMP, number) + (field(900, bytes(size)) if size else b"")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of each varint and length-delimited field."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        value, at = read_varint(message, at)
        if tag & 7 == 2:
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            assert tag & 7 == 0
            yield tag >> 3, value
    assert at == len(message)


def packets_of(trace: bytes) -> list[dict[int, int | bytes]]:
    return [dict(fields(p)) for number, p in fields(trace) if isinstance(p, bytes) and number == 1]


def numbers_of(trace: bytes) -> list[int | bytes]:
    return [p[TIMESTAMP] for p in packets_of(trace)]


def read_all(
    table: _native.BufferTable, buffer: int = BUFFER, readback: _native.Readback | None = None
) -> bytes:
    readback = readback or _native.Readback(table)
    readback.begin(buffer)
    out = b""
    more = True
    while more:
        data, more = readback.read(buffer, 32768)
        out += data
    return out


def make_table(size: int = 1 << 20, policy: int = _native.RING) -> _native.BufferTable:
    table = _native.BufferTable()
    table.create(BUFFER, size, policy)
    table.set_producer(BUFFER, PRODUCER, UID, PID)
    return table


def make_endpoint(table: _native.BufferTable) -> _native.ProducerEndpointCore:
    endpoint = _native.ProducerEndpointCore(table, PRODUCER)
    endpoint.allow_buffer(BUFFER, True)
    return endpoint


def make_arbiter(
    table: _native.BufferTable, size: int = 1 << 16, page_size: int = 4096
) -> _native.Arbiter:
    return _native.Arbiter.in_process(make_endpoint(table), size, page_size)


def sealed_memory(size: int) -> int:
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


SERVICE_ID = 1
COMMIT_DATA = 4
REGISTER_TRACE_WRITER = 6
UNREGISTER_TRACE_WRITER = 7
METHODS = (SERVICE_ID, COMMIT_DATA, REGISTER_TRACE_WRITER, UNREGISTER_TRACE_WRITER)


class RemoteProducer:
    """A producer and its service in one process, connected by shared memory and a socket."""

    def __init__(self, size: int = 1 << 16, page_size: int = 4096, *, bound: bool = True) -> None:
        self.service, self.client = socket.socketpair()
        self.table = make_table(8 << 20)
        self.endpoint = make_endpoint(self.table)
        self.queue = _native.SendQueue(self.client.fileno())
        fd = sealed_memory(size)
        self.endpoint.attach_fd(fd, size, page_size)
        self.arbiter = _native.Arbiter.unbound(fd, page_size)
        if bound:
            self.bind()
        os.close(fd)
        self.flush_ids: list[int] = []
        self.frames = 0
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.service.close()
        self.client.close()

    def bind(self) -> None:
        self.arbiter.bind(self.queue, *METHODS)

    def receive(self, timeout: float = 0) -> bytes:
        self.service.settimeout(timeout)
        try:
            return self.service.recv(1 << 17)
        except (TimeoutError, BlockingIOError):
            return b""

    def serve(self, timeout: float = 0) -> None:
        """Handle all frames that the producer has sent."""
        while data := self.receive(timeout):
            self._received += data
            self._handle()

    def serve_while(self, thread: threading.Thread) -> None:
        while thread.is_alive():
            self.serve(timeout=0.01)
        self.serve()

    def _handle(self) -> None:
        progress = True
        while progress:
            consumed, frames, flush_id = self.endpoint.commit_frames(
                self._received, SERVICE_ID, COMMIT_DATA
            )
            if flush_id:
                self.flush_ids.append(flush_id)
            self.frames += frames
            self._received = self._received[consumed:]
            progress = self._handle_other_frame()

    def _handle_other_frame(self) -> bool:
        if len(self._received) < 4:
            return False
        end = 4 + int.from_bytes(self._received[:4], "little")
        if len(self._received) < end:
            return False
        frame, self._received = self._received[4:end], self._received[end:]
        invoke = dict(fields(frame))[5]
        assert isinstance(invoke, bytes)
        call = dict(fields(invoke))
        args = call[3]
        assert isinstance(args, bytes)
        writer = dict(fields(args))
        if call[2] == REGISTER_TRACE_WRITER:
            self.endpoint.register_writer(int(writer[1]), int(writer[2]))
        else:
            assert call[2] == UNREGISTER_TRACE_WRITER
            self.endpoint.unregister_writer(int(writer[1]))
        return True
