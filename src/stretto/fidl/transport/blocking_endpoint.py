"""An end of a channel for threads: any may write, any may read, one at a time."""

from __future__ import annotations

import select
import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from stretto.fidl.transport.endpoint import Endpoint
from stretto.fidl.transport.errors import CallTimeoutError, ClosedError
from stretto.fidl.transport.message_socket import DONTWAIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.base.rpc_hooks import RpcMethod, Told
    from stretto.fidl.bindings.objects import ChannelEnd
    from stretto.fidl.bindings.protocols import Protocol
    from stretto.fidl.codec.message import Message
    from stretto.fidl.transport.endpoint import Incoming


class BlockingEndpoint(Endpoint):
    """See `Endpoint`.

    Attributes:
        write_lock: Orders the writes. Transactions are numbered under it.
    """

    def __init__(self, protocol: type[Protocol], end: ChannelEnd, *, is_server: bool) -> None:
        super().__init__(protocol, end, is_server=is_server)
        self.write_lock = threading.Lock()
        self._read_lock = threading.Lock()

    def write(self, method: RpcMethod, kind: int, txid: int, message: Message) -> Told | None:
        """Write a message; waits until there is room."""
        with self.write_lock:
            return self.write_locked(method, kind, txid, message)

    def write_locked(
        self, method: RpcMethod, kind: int, txid: int, message: Message
    ) -> Told | None:
        """The same, for who has the lock."""
        while True:
            try:
                return self.write_now(method, kind, txid, message)
            except BlockingIOError:  # someone else has made the socket non-blocking
                self._wait(select.POLLOUT, None)

    def read(self, deadline: float | None = None) -> Incoming | None:
        """Read a message; None: the peer has gone.

        Args:
            deadline: Of `time.monotonic`; None: wait for ever.

        Raises:
            CallTimeoutError: None came in time.
        """
        flags = 0 if deadline is None else DONTWAIT
        with self._read_lock:
            while True:
                try:
                    return self.read_now(flags)
                except BlockingIOError:
                    self._wait(select.POLLIN, deadline)

    def _wait(self, what: int, deadline: float | None) -> None:
        fd = self.socket.fileno()
        if fd < 0:
            raise ClosedError(by_us=True)
        poll = select.poll()
        poll.register(fd, what)
        left = None if deadline is None else max(deadline - monotonic(), 0) * 1000
        if not poll.poll(left):
            raise CallTimeoutError("nothing came in time")

    def close(self) -> None:
        """Close the channel, from any thread; who reads or writes is woken."""
        with self._undisturbed():
            self.socket.close()

    def detach(self) -> ChannelEnd:
        """Give the channel's end back, while nobody reads or writes."""
        with self.write_lock, self._read_lock:
            return self.socket.detach()

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Nobody is in a system call: a descriptor must not be closed under one."""
        for lock in (self.write_lock, self._read_lock):
            if not lock.acquire(blocking=False):
                self.socket.shutdown()
                lock.acquire()
        try:
            yield
        finally:
            self._read_lock.release()
            self.write_lock.release()
