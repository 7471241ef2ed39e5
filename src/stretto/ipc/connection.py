"""Connects a protocol machine to a socket, on a task runner.

Rules
- No call blocks: data that the socket doesn't accept is queued in the outbox, which is bounded. A
  peer that doesn't read until the outbox overflows is disconnected.
- If handling a frame raises an unexpected exception (a bug), the following frames are handled
  first, and the exception is raised later by a task of its own.
- The work per turn is limited (`BYTES_PER_TURN`): the remaining frames of a peer are handled after
  turns of other connections (`Turns`), and no more data is received from it meanwhile.
- The machine's callbacks may call every method here, including `close`. The machine is closed
  exactly once, and nothing is sent afterwards.
"""

from __future__ import annotations

from stretto.base.errors import RemoteProtocolError, TransportError
from stretto.ipc.frames import FrameReader
from stretto.ipc.turns import Turns

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from stretto.base.stream_socket import StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.service import Outbox

    FastPath = Callable[[memoryview, int, Callable[[int], object]], object]

    class Machine(Protocol):
        """A protocol machine: `HostConnection` or `Client`."""

        def park_fd(self, fd: int) -> None: ...
        def receive(self, payload: bytes) -> None: ...
        def close(self) -> None: ...

    class SocketOutbox(Outbox, Protocol):
        """An outbox for a socket: `_native.SendQueue`."""

        def drain(self) -> None: ...
        @property
        def pending(self) -> int: ...
        @property
        def broken(self) -> bool: ...


BYTES_PER_TURN = 16384
"""A connection handles about this number of bytes per turn."""
BYTES_OF_A_FRAME = 1024
"""Bytes added for each frame outside of the fast path, which takes tens of microseconds."""


def _nothing(_reason: str = "") -> None:
    pass


class Connection:
    """One connected socket; also the outbox of its protocol machine.

    Args:
        end: The socket; owned by this object from now on.
        runner: The task runner of the connection.
        queue: The outgoing queue of the same socket.
        on_closed: Called once, when either side has ended the connection.
        on_cut_off: Called with the reason before a peer is disconnected because it violates the
            protocol, or doesn't read.
        turns: The queue of turns, shared with other connections.
        urgent: Whether this connection is served before those that are not urgent.
    """

    def __init__(
        self,
        end: StreamSocket,
        runner: TaskRunner,
        queue: SocketOutbox,
        on_closed: Callable[[], object],
        on_cut_off: Callable[[str], object] = _nothing,
        *,
        turns: Turns | None = None,
        urgent: bool = False,
    ) -> None:
        self._end: StreamSocket | None = end
        self._runner = runner
        self._queue = queue
        self._on_closed = on_closed
        self._on_cut_off = on_cut_off
        self._reader = FrameReader()
        self._machine: Machine | None = None
        self._fast_path: FastPath | None = None
        self._on_drained: Callable[[], object] | None = None
        self._turns = turns or Turns(runner)
        self._urgent = urgent
        self._waits_for_turn = False
        self._closes_at_end = False
        self._writing = False

    def start(
        self,
        machine: Machine,
        fast_path: FastPath | None = None,
        on_drained: Callable[[], object] | None = None,
    ) -> None:
        """Begin to receive.

        Args:
            machine: Receives the payload of each frame.
            fast_path: Called as `fast_path(data, most, consume)`. `data` are received bytes that
                are not split into frames yet. The function handles frames, up to `most` bytes in
                all. After each frame it calls `consume(size of the frame)`, before it does anything
                else that can fail.
            on_drained: Called when the peer has read queued data.
        """
        self._machine = machine
        self._fast_path = fast_path
        self._on_drained = on_drained
        self._watch()

    def fileno(self) -> int:
        """Return the socket's descriptor; -1 after the connection has ended."""
        return -1 if self._end is None else self._end.fileno()

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self._end is None

    @property
    def pending_bytes(self) -> int:
        """Number of queued bytes that the peer has not read."""
        return 0 if self._end is None else self._queue.pending

    def close(self) -> None:
        """Close the connection. No effect if it has ended."""
        if self._end is None:
            return
        end, self._end = self._end, None
        self._runner.unwatch(end.fileno())
        end.close()
        # Free the buffer and the references now: the garbage collector may run much later.
        self._reader.close()
        machine, on_closed = self._machine, self._on_closed
        self._machine = self._fast_path = self._on_drained = None
        self._on_closed = self._on_cut_off = _nothing
        if machine is not None:
            machine.close()
        on_closed()

    def abandon(self) -> None:
        """In the child of a fork: close this process's copy of the socket."""
        if self._end is not None:
            self._end.close()
            self._end = None

    def close_soon(self) -> None:
        """Close the connection in a task, because a caller may be iterating over connections."""
        self._runner.post(self.close)

    def give_up(self) -> None:
        """Close the connection soon, because the outbox refused a frame.

        If the peer has already closed the connection, the data that the peer has sent is handled
        first.
        """
        if self._end is None:
            return
        if not self._queue.broken:
            on_cut_off, self._on_cut_off = self._on_cut_off, _nothing
            on_cut_off("it doesn't read what it is sent")
            self.close_soon()
        elif not self._closes_at_end:
            self._closes_at_end = True
            self._turns.add(self._read_to_end)

    def _read_to_end(self) -> None:
        if not self._waits_for_turn:
            self._take_turn(self._receive)
        if self._end is not None:
            self._turns.add(self._read_to_end)

    def push(self, frame: bytes, fd: int = -1) -> bool:
        """Send a frame; return False if it was refused."""
        if self._end is None:
            return False
        accepted = self._queue.push(frame, fd)
        self._watch_writable()
        return accepted

    def invoke(
        self, service_id: int, method_id: int, args: bytes, drop_reply: bool, fd: int = -1
    ) -> int:
        """Send a request; return its id, 0 if it was refused."""
        if self._end is None:
            return 0
        request_id = self._queue.invoke(service_id, method_id, args, drop_reply, fd)
        self._watch_writable()
        return request_id

    def next_request_id(self) -> int:
        """Return an unused request id."""
        return self._queue.next_request_id()

    def _watch_writable(self) -> None:
        writing = self._queue.pending > 0 and not self._queue.broken
        if writing != self._writing:
            self._writing = writing
            self._watch()

    def _watch(self) -> None:
        if self._end is not None and self._machine is not None:
            on_readable = None if self._waits_for_turn else self._on_readable
            on_writable = self._on_writable if self._writing else None
            self._runner.watch(self._end.fileno(), on_readable, on_writable, urgent=self._urgent)

    def _on_writable(self) -> None:
        self._queue.drain()
        self._watch_writable()
        if self._on_drained is not None:
            self._on_drained()

    def _on_readable(self) -> None:
        self._take_turn(self._receive)

    def _go_on(self) -> None:
        """Handle frames that are left from the previous turn."""
        self._take_turn(self._dispatch)

    def _take_turn(self, handle: Callable[[], bool]) -> None:
        waited = self._waits_for_turn
        try:
            self._waits_for_turn = handle()
        except RemoteProtocolError as error:
            self._on_cut_off(str(error))
            self.close()
        except TransportError:
            self.close()
        if self._end is None:
            return
        if self._waits_for_turn:
            self._turns.add(self._go_on)
        if self._waits_for_turn != waited:
            self._watch()

    def _receive(self) -> bool:
        """Receive data once and handle its frames; return whether complete frames are left."""
        if self._end is None or self._machine is None:
            return False
        space = self._reader.space()
        received = self._end.recv_into(space)
        if received is None:
            if self._closes_at_end:
                self.close()
            return False
        size, fd = received
        self._machine.park_fd(fd)
        if size == 0:
            self.close()
            return False
        self._reader.received(size)
        return self._dispatch()

    def _dispatch(self) -> bool:
        """Handle frames up to the limit of a turn; return whether complete frames are left."""
        left = BYTES_PER_TURN
        while self._end is not None:
            if self._fast_path is not None:
                left -= self._take_fast_path(self._fast_path, left)
            if left <= 0:
                return self._reader.has_frame
            payload = self._reader.next_payload()
            if payload is None or self._machine is None:
                return False
            left -= BYTES_OF_A_FRAME + len(payload)
            try:
                self._machine.receive(payload)
            except (RemoteProtocolError, TransportError):
                raise
            except Exception as error:  # noqa: BLE001  # raised again, by a task
                self._raise_soon(error)
        return False

    def _take_fast_path(self, fast_path: FastPath, most: int) -> int:
        reader = self._reader
        before = reader.pending_size
        if not before:
            return 0
        try:
            fast_path(reader.pending(), most, reader.consume)
        except Exception as error:  # noqa: BLE001  # raised again, by a task
            self._raise_soon(error)
        return before - reader.pending_size

    def _raise_soon(self, error: Exception) -> None:
        def fail() -> None:
            raise error

        self._runner.post(fail)
