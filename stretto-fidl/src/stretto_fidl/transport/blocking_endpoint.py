"""A channel end for threads: at any time one thread writes and one thread reads.

A signal handler may raise an exception after any call and before each round of a loop. Even then
each lock must be released. So the result of an `acquire` with a time limit is stored in a list
before any handler can run. No function is called between the check of that list and the release of
the lock.
"""

from __future__ import annotations

import select
import threading
from threading import get_ident
from typing import TYPE_CHECKING

from stretto_fidl.errors import FidlError
from stretto_fidl.transport.deadline import is_over, seconds_left
from stretto_fidl.transport.endpoint import Endpoint
from stretto_fidl.transport.errors import CallTimeoutError, ClosedError
from stretto_fidl.transport.message_socket import DONTWAIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.rpc_hooks import MessageSpan, RpcMethod
    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Protocol
    from stretto_fidl.codec.message import Message
    from stretto_fidl.transport.endpoint import Incoming


class BlockingEndpoint(Endpoint):
    """A channel end for threads; see the module's docstring.

    Attributes:
        is_closing: Whether `close` has been called. Another thread may still be running it.
    """

    def __init__(self, protocol: type[Protocol], end: ChannelEnd, *, is_server: bool) -> None:
        super().__init__(protocol, end, is_server=is_server)
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self.is_closing = False
        self._writing = self._reading = 0  # the ids of the threads that write and read; 0 for none

    def write(
        self,
        method: RpcMethod,
        kind: int,
        prepared: Callable[[], tuple[int, Message]],
        *,
        deadline: float | None = None,
    ) -> MessageSpan | None:
        """Write a message, waiting until there is room.

        If an earlier call was interrupted or ran out of time, the rest of its message is written
        first.

        Args:
            method: The method of the message.
            kind: The kind of the message, as for `write_now`.
            prepared: A function that returns the transaction id and the message; it is called with
                the lock held.
            deadline: A time of `time.monotonic`; None waits for ever.

        Raises:
            CallTimeoutError: There was no room in time. Nothing or a part of the message was
                written.
            ClosedError: One side has closed the channel.
        """
        held: list[bool] = []
        patience = -1 if deadline is None else seconds_left(deadline)
        try:
            held.extend(map(self._write_lock.acquire, (True,), (patience,)))
            if not held[0]:
                raise CallTimeoutError(_NO_ROOM)
            self._writing = get_ident()
            self._check_open()
            if self.socket.is_stream:
                self._flush(deadline)
            txid, message = prepared()
            span = self._write_when_possible(method, kind, txid, message, deadline)
            if self.socket.is_stream:
                self._flush(deadline)
            return span
        finally:
            if held and held[0]:
                self._writing = 0
                self._write_lock.release()

    def _write_when_possible(
        self, method: RpcMethod, kind: int, txid: int, message: Message, deadline: float | None
    ) -> MessageSpan | None:
        while True:
            try:
                return self.write_now(method, kind, txid, message, DONTWAIT)
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline, _NO_ROOM)

    def _flush(self, deadline: float | None) -> None:
        while self.socket.must_flush():
            self._wait(select.POLLOUT, deadline, _NO_ROOM)
            self.socket.flush(DONTWAIT)

    def try_write_epitaph(self, status: int, *, patience: float) -> None:
        """Write the epitaph if there is room now.

        Args:
            status: The status of the epitaph.
            patience: How long to wait for another thread's write, in seconds.
        """
        held: list[bool] = []
        try:
            held.extend(map(self._write_lock.acquire, (True,), (patience,)))
            if held[0]:
                self.write_epitaph(status, DONTWAIT)
        except (FidlError, BlockingIOError):
            # Another thread holds the lock because the peer doesn't read, so send no epitaph.
            return
        finally:
            if held and held[0]:
                self._write_lock.release()

    def read(self, deadline: float | None = None) -> Incoming | None:
        """Return the next message and keep it in `pending`; None if the channel is closed.

        Args:
            deadline: A time of `time.monotonic`; None waits for ever.

        Raises:
            CallTimeoutError: No message came in time.
        """
        flags = 0 if deadline is None else DONTWAIT
        with self._read_lock:
            self._reading = get_ident()
            try:
                return self._read_when_possible(flags, deadline)
            finally:
                self._reading = 0

    def _read_when_possible(self, flags: int, deadline: float | None) -> Incoming | None:
        while True:
            self._check_open()
            try:
                return self.read_now(flags)
            except BlockingIOError:
                self._wait(select.POLLIN, deadline, "nothing came in time")

    def _check_open(self) -> None:
        if self.is_closing or self.socket.fileno() < 0:
            raise ClosedError(by_us=True)

    def _wait(self, what: int, deadline: float | None, problem: str) -> None:
        poll = select.poll()
        poll.register(self.socket.fileno(), what)
        while not poll.poll(None if deadline is None else seconds_left(deadline) * 1000):
            if is_over(deadline):
                raise CallTimeoutError(problem)

    def close(self) -> None:
        """Close the channel, from any thread, and wake the threads that read or write.

        A signal handler may call this while its thread reads or writes. Then the call only shuts
        the connection down, and the interrupted function closes the socket.
        """
        self.is_closing = True  # From now on, a thread that acquires a lock releases it at once.
        if self._write_lock.locked() or self._read_lock.locked():
            self.socket.shutdown()
        if get_ident() in (self._writing, self._reading):
            return
        # With both locks no thread is in a system call on this descriptor, so it may be closed.
        with self._write_lock, self._read_lock:
            self.socket.close()

    def detach(self) -> ChannelEnd:
        """Return the channel end without closing it. No thread may be reading or writing."""
        with self._write_lock, self._read_lock:
            return self.socket.detach()


_NO_ROOM = "there was no room for the message in time: the peer doesn't read"
