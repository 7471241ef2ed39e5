"""Drives one protocol machine over one socket on a task runner.

Rules
- Nothing blocks: what the socket doesn't take waits in the outbox, which is
  bounded; a peer that makes it overflow is disconnected.
- A frame whose handling fails (a bug) delays none of those behind it: they are handled first,
  and the exception leaves the task runner from a task of its own.
- A turn is limited (`BYTES_PER_TURN`): a peer that has sent much waits for the others' turns
  (`Turns`), and nothing more is received from it meanwhile.
- A callback of the machine may call every method here, `close` too. The machine is closed
  exactly once, and afterwards nothing is sent.
"""

from __future__ import annotations

from stretto.base.errors import RemoteProtocolError, TransportError
from stretto.ipc.frames import FrameReader
from stretto.ipc.turns import Turns

TYPE_CHECKING = False  # importing `typing` takes longer than importing this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from stretto.base.stream_socket import StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.service import Outbox

    FastPath = Callable[[memoryview, int, Callable[[int], object]], object]

    class Machine(Protocol):
        """`HostConnection` or `Client`."""

        def park_fd(self, fd: int) -> None: ...
        def receive(self, payload: bytes) -> None: ...
        def close(self) -> None: ...

    class SocketOutbox(Outbox, Protocol):
        """An outbox on a socket: `_native.SendQueue`."""

        def drain(self) -> None: ...
        @property
        def pending(self) -> int: ...
        @property
        def broken(self) -> bool: ...


BYTES_PER_TURN = 16384
"""A connection handles about so many bytes of frames; then the others get their turns."""
BYTES_OF_A_FRAME = 1024
"""A frame that the fast path leaves counts at least as so many: it costs tens of microseconds."""


def _nothing(_reason: str = "") -> None:
    pass


class Connection:
    """One connected socket. Itself the outbox of its machine.

    Args:
        end: The socket; owned by this object from now on.
        runner: The task runner of the connection.
        queue: The outgoing queue on the same socket.
        on_closed: Called once, when either side has ended the connection.
        on_cut_off: Called with the reason before a peer is disconnected because it breaks the
            protocol, or doesn't read.
        turns: Shared with the connections that this one takes turns with.
        urgent: This connection is served before those that are not urgent.
    """

    __slots__ = (
        "_closes_at_end", "_end", "_fast_path", "_machine", "_on_closed", "_on_cut_off",
        "_on_drained", "_queue", "_reader", "_runner", "_turns", "_urgent", "_waits_for_turn",
        "_writing",
    )  # fmt: skip

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
            machine: Gets each frame's payload.
            fast_path: Gets received bytes before they are cut into frames; the number of bytes
                after which it stops; and a function that it calls with the size of the whole
                frames that it has handled, before anything that follows from them can fail.
            on_drained: Called when the peer has read some of what waited for it.
        """
        self._machine = machine
        self._fast_path = fast_path
        self._on_drained = on_drained
        self._watch()

    def fileno(self) -> int:
        """The socket's descriptor, -1 after the end."""
        return -1 if self._end is None else self._end.fileno()

    @property
    def closed(self) -> bool:
        """The connection has ended."""
        return self._end is None

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait for the peer to read."""
        return 0 if self._end is None else self._queue.pending

    def close(self) -> None:
        """Hang up. Harmless if it has ended."""
        if self._end is None:
            return
        end, self._end = self._end, None
        self._runner.unwatch(end.fileno())
        end.close()
        # Its memory, and whom it served, go with it: the collector may come by much later.
        self._reader.close()
        machine, on_closed = self._machine, self._on_closed
        self._machine = self._fast_path = self._on_drained = None
        self._on_closed = self._on_cut_off = _nothing
        if machine is not None:
            machine.close()
        on_closed()

    def abandon(self) -> None:
        """In the child of a fork: close our copy of the socket, and touch nothing else."""
        if self._end is not None:
            self._end.close()
            self._end = None

    def close_soon(self) -> None:
        """Hang up when the caller's caller is done: it may be looping over connections."""
        self._runner.post(self.close)

    def give_up(self) -> None:
        """Hang up soon: the outbox takes no more.

        If the peer has ended, what it sent before is handled first.
        """
        if self._end is None:
            return
        if not self._queue.broken:
            tell, self._on_cut_off = self._on_cut_off, _nothing
            tell("it doesn't read what it is sent")
            self.close_soon()
        elif not self._closes_at_end:
            self._closes_at_end = True
            self._turns.add(self._read_to_end)

    def _read_to_end(self) -> None:
        if not self._waits_for_turn:
            self._take_turn(self._receive)
        if self._end is not None:
            self._turns.add(self._read_to_end)

    # --- outbox

    def push(self, frame: bytes, fd: int = -1) -> bool:
        """Send a frame; False: refused."""
        if self._end is None:
            return False
        accepted = self._queue.push(frame, fd)
        self._watch_writable()
        return accepted

    def invoke(
        self, service_id: int, method_id: int, args: bytes, drop_reply: bool, fd: int = -1
    ) -> int:
        """Send a request; its id, 0 if it was refused."""
        if self._end is None:
            return 0
        request_id = self._queue.invoke(service_id, method_id, args, drop_reply, fd)
        self._watch_writable()
        return request_id

    def next_request_id(self) -> int:
        """A fresh request id."""
        return self._queue.next_request_id()

    # --- socket

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
        """The turn after one that left frames."""
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
        """Receive once and dispatch; True: whole frames are left."""
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
        """Handle what a turn allows; True: whole frames are left."""
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
