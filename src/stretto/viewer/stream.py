"""A stream socket on a task runner, with back-pressure in both directions.

Rules
- Nothing blocks. What the socket doesn't take waits here; its owner looks at `congested` before
  it produces more, and goes on at `on_drained`.
- `pause` stops reading: then the peer has to wait.
- `on_end` is called once, when the connection has ended for whatever reason, by our `close` too;
  nothing is called afterwards.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from stretto.base.errors import TransportError

if TYPE_CHECKING:
    from stretto.base.task_runner import TaskRunner

RECEIVE_BYTES = 64 << 10
HIGH_WATER_BYTES = 512 << 10
"""More than this waiting to be sent is congestion."""
LOW_WATER_BYTES = 128 << 10
"""When so little waits, the owner may go on."""
LINGER_MS = 2000
"""How long a peer has to hang up after it was told everything."""


class StreamEnd(Protocol):
    """What a stream needs of its socket."""

    def fileno(self) -> int: ...
    def send(self, data: bytes | memoryview, fd: int = -1) -> int: ...
    def recv_into(self, buffer: memoryview) -> tuple[int, int] | None: ...
    def close(self) -> None: ...


class StreamOwner(Protocol):
    """Who listens to a stream."""

    def on_bytes(self, data: memoryview) -> object:
        """Bytes came; copy what is kept."""

    def on_drained(self) -> object:
        """Little is left to be sent: there is room again."""

    def on_end(self) -> object:
        """The connection has ended."""


class Stream:
    """One connection.

    Args:
        end: Belongs to this object from now on.
        runner: Where everything runs.
        owner: Listens; another one may take over later.
    """

    __slots__ = ("_broken", "_end", "_ending", "_linger_ms", "_lingering", "_output", "_paused",
                 "_runner", "_sent", "_watched", "owner")  # fmt: skip

    def __init__(self, end: StreamEnd, runner: TaskRunner, owner: StreamOwner) -> None:
        self._end: StreamEnd | None = end
        self._runner = runner
        self.owner = owner
        self._output = bytearray()
        self._sent = 0  # bytes of the output's front that went out already
        self._paused = False
        self._broken = False
        self._ending = False
        self._linger_ms: float = LINGER_MS
        self._lingering: object | None = None
        self._watched = (False, False)
        self._watch()

    @property
    def closed(self) -> bool:
        """The connection has ended."""
        return self._end is None

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait to be sent."""
        return len(self._output) - self._sent

    @property
    def delivered(self) -> bool:
        """All that was written went out, and the connection didn't break."""
        return not self._broken and self.pending_bytes == 0

    @property
    def congested(self) -> bool:
        """Too much waits to be sent: produce no more before `on_drained`."""
        return self.pending_bytes > HIGH_WATER_BYTES

    def write(self, data: bytes | memoryview) -> None:
        """Send, now or as soon as possible. Dropped once the connection is ending."""
        if self._end is None or self._ending or not data:
            return
        self._output += data
        self._send()

    def pause(self) -> None:
        """Read no more before `resume`."""
        if not self._paused and not self._ending:
            self._paused = True
            self._watch()

    def resume(self) -> None:
        """Read again."""
        if self._paused:
            self._paused = False
            self._watch()

    def finish(self, linger_ms: float = LINGER_MS) -> None:
        """Send what waits, let the peer hang up, and close. What still comes is thrown away.

        Args:
            linger_ms: How long the peer has, once it was sent everything. A peer that is still
                sending when we close may lose our last words.
        """
        if self._end is not None and not self._ending:
            self._ending = True
            self._linger_ms = linger_ms
            self._paused = False
            self._watch()
            self._linger_if_sent()

    def close(self) -> None:
        """Hang up at once. Harmless if it has ended."""
        if self._end is None:
            return
        end, self._end = self._end, None
        if self._lingering is not None:
            self._runner.cancel(self._lingering)
        self._runner.unwatch(end.fileno())
        end.close()
        self.owner.on_end()

    # --- socket

    def _watch(self) -> None:
        wanted = (not self._paused, self.pending_bytes > 0)
        if self._end is not None and wanted != self._watched:
            self._watched = wanted
            on_readable = self._on_readable if wanted[0] else None
            on_writable = self._on_writable if wanted[1] else None
            self._runner.watch(self._end.fileno(), on_readable, on_writable)

    def _on_readable(self) -> None:
        if self._end is None:
            return
        buffer = memoryview(bytearray(RECEIVE_BYTES))
        try:
            received = self._end.recv_into(buffer)
        except TransportError:
            self._broken = True
            self.close()
            return
        if received is None:
            return
        size, fd = received
        if fd >= 0:
            os.close(fd)  # nobody sends one here for a reason
        if size == 0:
            self.close()
        elif not self._ending:
            self.owner.on_bytes(buffer[:size])

    def _on_writable(self) -> None:
        self._send()
        if self.pending_bytes <= LOW_WATER_BYTES and not self._ending and self._end is not None:
            self.owner.on_drained()

    def _send(self) -> None:
        """Hand the socket what it takes; a broken one is closed soon, not inside of this."""
        if self._end is None:
            return
        try:
            with memoryview(self._output) as output:
                while self._sent < len(output):
                    taken = self._end.send(output[self._sent :])
                    if taken == 0:
                        break
                    self._sent += taken
        except TransportError:
            self._broken = self._ending = True
            self._runner.unwatch(self._end.fileno())
            self._runner.post(self.close)
            return
        self._forget_sent()
        self._watch()
        if self._ending:
            self._linger_if_sent()

    def _forget_sent(self) -> None:
        # Moving what is left to the front costs: not for every few bytes.
        if self._sent == len(self._output) or self._sent > HIGH_WATER_BYTES:
            del self._output[: self._sent]
            self._sent = 0

    def _linger_if_sent(self) -> None:
        if self.pending_bytes or self._lingering is not None:
            return
        if self._linger_ms:
            self._lingering = self._runner.post_delayed(self.close, self._linger_ms)
        else:
            self.close()
