"""A channel end in an asyncio loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stretto_fidl.transport.endpoint import Endpoint
from stretto_fidl.transport.errors import ClosedError
from stretto_fidl.transport.message_socket import DONTWAIT, MessageSocket

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.rpc_hooks import MessageSpan, RpcMethod
    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Protocol
    from stretto_fidl.codec.message import Message
    from stretto_fidl.transport.endpoint import Incoming


class AsyncEndpoint(Endpoint):
    """A channel end for asyncio. Only the loop that runs when it is created may use it.

    Attributes:
        write_lock: Orders the writes: waiting tasks get the lock first come, first served.
    """

    def __init__(self, protocol: type[Protocol], end: ChannelEnd, *, is_server: bool) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(protocol, end, is_server=is_server)
        self.write_lock = asyncio.Lock()
        self._writable: asyncio.Future[None] | None = None

    async def write(
        self, method: RpcMethod, kind: int, txid: int, message: Message
    ) -> MessageSpan | None:
        """Write a message, waiting until there is room.

        If the caller is cancelled while it waits, nothing is sent.
        """
        async with self.write_lock:
            return await self.write_locked(method, kind, txid, message)

    async def write_locked(
        self, method: RpcMethod, kind: int, txid: int, message: Message
    ) -> MessageSpan | None:
        """Write a message as `write` does, for a caller that holds `write_lock`."""
        while True:
            try:
                if not self.socket.must_flush():
                    span = self.write_now(method, kind, txid, message, DONTWAIT)
                    if self.socket.must_flush():
                        self._watch()
                    return span
            except BlockingIOError:
                pass
            await self._until_writable()

    async def _until_writable(self) -> None:
        self._watch()
        self._writable = self._loop.create_future()
        try:
            await self._writable
        finally:
            self._writable = None

    def _watch(self) -> None:
        if self.socket.fileno() < 0:
            raise ClosedError(by_us=True)
        self._loop.add_writer(self.socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        self.socket.flush(DONTWAIT)
        if not self.socket.must_flush():
            self._loop.remove_writer(self.socket.fileno())
            if self._writable is not None and not self._writable.done():
                self._writable.set_result(None)

    def on_readable(self, callback: Callable[[], object]) -> None:
        """Register a function that is called whenever the socket can be read."""
        self._loop.add_reader(self.socket.fileno(), callback)

    def off_readable(self) -> None:
        """Unregister the function that `on_readable` registered."""
        if self.socket.fileno() >= 0:
            self._loop.remove_reader(self.socket.fileno())

    def read(self) -> Incoming | None:
        """Return the next message and keep it in `pending`; None if the peer has closed the
        channel.

        Raises:
            BlockingIOError: No message has arrived.
        """
        return self.read_now(DONTWAIT)

    def _forget(self) -> None:
        _forget(self._loop, self.socket)
        if self._writable is not None and not self._writable.done():
            self._writable.set_exception(ClosedError(by_us=True))

    def __del__(self) -> None:
        """Unregister the descriptor from the loop. The descriptor must still be open."""
        if not hasattr(self, "_writable") or self.socket.fileno() < 0:
            return
        try:
            self._loop.call_soon_threadsafe(_forget, self._loop, self.socket)
        except RuntimeError:
            return  # A closed loop watches no socket.

    def detach(self) -> ChannelEnd:
        """Return the channel end without closing it; this object can't be used afterwards."""
        self._forget()
        return self.socket.detach()

    def close(self) -> None:
        """Close the channel. Tasks that wait for room raise ClosedError."""
        self._forget()
        self.socket.close()


def _forget(loop: asyncio.AbstractEventLoop, socket: MessageSocket) -> None:
    fd = socket.fileno()
    if fd >= 0 and not loop.is_closed():
        loop.remove_reader(fd)
        loop.remove_writer(fd)
