"""Track events over shared memory to a service that reads only when a test calls it.

Shared memory, socket, commit frames and trace buffer are real. Only `catch_up` frees chunks, so
the event at which a small shared memory overflows is predictable.
"""

from __future__ import annotations

import os
import socket

from stretto import _native
from stretto.base.memory import create_sealed_memfd
from stretto.client.track_event import slots
from stretto.protos.ipc import IPCFrame, RegisterTraceWriterRequest

SERVICE, COMMIT, REGISTER, UNREGISTER = 1, 4, 6, 7
BUFFER, PRODUCER = 1, 1


class SlowService:
    """A producer and a slow service in this process, connected by a socket pair."""

    def __init__(self, *, pages: int = 4, page_size: int = 4096, buffer: int = 16 << 20) -> None:
        size = pages * page_size
        self._memory = create_sealed_memfd(size)
        self._near, self._far = socket.socketpair()
        self._far.setblocking(False)
        self.table = _native.BufferTable()
        self.table.create(BUFFER, buffer, _native.RING)
        self.table.set_producer(BUFFER, PRODUCER, os.getuid(), os.getpid())
        self.core = _native.ProducerEndpointCore(self.table, PRODUCER)
        self.core.attach_fd(self._memory, size, page_size)
        self.core.allow_buffer(BUFFER, True)
        self._queue = _native.SendQueue(self._near.fileno())
        self.arbiter = _native.Arbiter.unbound(self._memory, page_size)
        self.arbiter.bind(self._queue, SERVICE, COMMIT, REGISTER, UNREGISTER)
        self._received = b""
        slot = slots.take_slot()
        assert slot is not None
        self.slot = slot
        self._is_started = False

    def start(self) -> None:
        """Record every category of this process."""
        _native.start_instance(self.slot, self.arbiter, BUFFER, _native.DROP)
        slots.enable(self.slot, None)
        self._is_started = True

    def stop(self) -> None:
        self._is_started = False
        slots.disable(self.slot)
        _native.stop_instance(self.slot)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of written and lost events."""
        return _native.instance_counts(self.slot)

    def catch_up(self) -> None:
        """Read all committed chunks and free them."""
        self._queue.drain()
        try:
            self._received += self._far.recv(1 << 20)
        except BlockingIOError:
            return
        while self._received:
            self._received = self._received[self._handle_frames() :]

    def _handle_frames(self) -> int:
        """Handle the next frames if they are commits, else one frame; return the handled size."""
        consumed, _, _ = self.core.commit_frames(self._received, SERVICE, COMMIT)
        if consumed:
            return consumed
        size = 4 + int.from_bytes(self._received[:4], "little")
        call = IPCFrame.decode(self._received[4:size]).msg_invoke_method
        if call.method_id == REGISTER:
            request = RegisterTraceWriterRequest.decode(call.args_proto)
            self.core.register_writer(request.trace_writer_id, request.target_buffer)
        return size

    def read(self) -> bytes:
        """Return the trace, including the data that is still in shared memory."""
        self.catch_up()
        self.core.scrape([BUFFER])
        readback = _native.Readback(self.table)
        readback.begin(BUFFER)
        pieces, more = [], True
        while more:
            data, more = readback.read(BUFFER, 1 << 20)
            pieces.append(data)
        return b"".join(pieces)

    def close(self) -> None:
        if self._is_started:  # A test ended early: it failed, or was skipped.
            self.stop()
        self._near.close()
        self._far.close()
        os.close(self._memory)
