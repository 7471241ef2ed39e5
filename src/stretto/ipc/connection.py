"""Drives one protocol machine over one socket on a task runner.

Rules
- Nothing blocks: what the socket doesn't take waits in the outbox, which is
  bounded; a peer that makes it overflow is hung up on.
- A frame whose handling fails (a bug) delays none of those behind it: they are handled first,
  and the exception leaves the task runner from a task of its own.
- A callback of the machine may call anything here, `close` too; the machine
  hears of the end exactly once, and afterwards nothing is sent.
"""

from __future__ import annotations

from stretto.base.errors import RemoteProtocolError, TransportError
from stretto.ipc.frames import FrameReader

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from stretto.base.stream_socket import StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.service import Outbox

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


RECEIVES_PER_TURN = 4
"""Then other connections get their turn."""


def _nothing(_reason: str = "") -> None:
    pass


class Connection:
    """One connected socket. Itself the outbox of its machine.

    Args:
        end: Belongs to this object from now on.
        runner: Where everything runs.
        queue: On the same socket.
        on_closed: Called once, when the connection has ended from whatever side.
        on_cut_off: Called with the reason before we hang up on a peer that doesn't keep to the
            protocol, or doesn't read.
    """

    __slots__ = (
        "_end", "_fast_path", "_machine", "_on_closed", "_on_cut_off", "_on_drained", "_queue",
        "_reader", "_runner", "_writing",
    )  # fmt: skip

    def __init__(
        self,
        end: StreamSocket,
        runner: TaskRunner,
        queue: SocketOutbox,
        on_closed: Callable[[], object],
        on_cut_off: Callable[[str], object] = _nothing,
    ) -> None:
        self._end: StreamSocket | None = end
        self._runner = runner
        self._queue = queue
        self._on_closed = on_closed
        self._on_cut_off = on_cut_off
        self._reader = FrameReader()
        self._machine: Machine | None = None
        self._fast_path: Callable[[memoryview], int] | None = None
        self._on_drained: Callable[[], object] | None = None
        self._writing = False

    def start(
        self,
        machine: Machine,
        fast_path: Callable[[memoryview], int] | None = None,
        on_drained: Callable[[], object] | None = None,
    ) -> None:
        """Begin to receive.

        Args:
            machine: Gets each frame's payload.
            fast_path: Looks at received bytes before they are cut into frames,
                and returns how many it handled (whole frames).
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
        """Hang up soon: the outbox takes no more."""
        if self._end is not None and not self._queue.broken:
            tell, self._on_cut_off = self._on_cut_off, _nothing
            tell("it doesn't read what it is sent")
        self.close_soon()

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
            on_writable = self._on_writable if self._writing else None
            self._runner.watch(self._end.fileno(), self._on_readable, on_writable)

    def _on_writable(self) -> None:
        self._queue.drain()
        self._watch_writable()
        if self._on_drained is not None:
            self._on_drained()

    def _on_readable(self) -> None:
        try:
            for _ in range(RECEIVES_PER_TURN):
                if not self._receive():
                    break
        except RemoteProtocolError as error:
            self._on_cut_off(str(error))
            self.close()
        except TransportError:
            self.close()

    def _receive(self) -> bool:
        """Receive once and dispatch; False: nothing more now, as far as we know."""
        if self._end is None or self._machine is None:
            return False
        space = self._reader.space()
        received = self._end.recv_into(space)
        if received is None:
            return False
        size, fd = received
        self._machine.park_fd(fd)
        if size == 0:
            self.close()
            return False
        self._reader.received(size)
        self._dispatch(self._machine)
        # What is left, or comes meanwhile, is told by the next turn; to ask costs a system call.
        return size == len(space)

    def _dispatch(self, machine: Machine) -> None:
        while self._end is not None:
            if self._fast_path is not None:
                self._reader.consume(self._take_fast_path(self._fast_path))
            payload = self._reader.next_payload()
            if payload is None or self._end is None:
                return
            try:
                machine.receive(payload)
            except (RemoteProtocolError, TransportError):
                raise
            except Exception as error:  # noqa: BLE001  # raised again, by a task
                self._raise_soon(error)

    def _take_fast_path(self, fast_path: Callable[[memoryview], int]) -> int:
        try:
            return fast_path(self._reader.pending())
        except Exception as error:  # noqa: BLE001  # raised again, by a task
            self._raise_soon(error)
            return 0

    def _raise_soon(self, error: Exception) -> None:
        def fail() -> None:
            raise error

        self._runner.post(fail)
