"""The server for asyncio: it serves one channel while `serve` is awaited.

Handlers are written as for `Server`. A coroutine function runs as a task of its own, so that many
calls run at a time; tasks begin in the order of the messages. The server calls other functions
directly. Both kinds of handlers may return a Deferred. An exception of a handler, a cancellation
included, ends the channel with the epitaph INTERNAL, and `serve` raises it.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final, Self

from stretto.base.rpc_hooks import EVENT as EVENT_MESSAGE
from stretto.base.rpc_hooks import REPLY
from stretto_fidl.bindings.protocols import EVENT, TWO_WAY
from stretto_fidl.codec.wire_error import WireError
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.async_endpoint import AsyncEndpoint
from stretto_fidl.transport.deferred import Deferred
from stretto_fidl.transport.errors import ClosedError, DomainError, PeerError
from stretto_fidl.transport.interaction import handlers_of, interaction, status_of
from stretto_fidl.transport.message_socket import DONTWAIT
from stretto_fidl.transport.results import (
    error_reply_of,
    message_of,
    payload_of,
    reply_of,
    request_in,
    unknown_reply_of,
)
from stretto_fidl.transport.server import IN_FLIGHT
from stretto_fidl.transport.stubs import stub_class

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Method, Protocol
    from stretto_fidl.codec.message import Message
    from stretto_fidl.transport.endpoint import Incoming

_AT_A_TIME: Final = 16
"""Messages that are handled before other callbacks of the loop run."""


class AsyncServer:
    """A server of one channel. A coroutine method for each event sends that event.

    Args:
        protocol: The class of the protocol.
        end: The end of the channel; this object closes it.
        handler: An object with a method for each method of the protocol. It may have
            `on_unknown_method(ordinal)`.
        in_flight: The maximum number of handlers that run at a time. While so many run, no message
            is read.

    Raises:
        FidlError: The handler has no method for some method of the protocol.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __new__(
        cls,
        protocol: type[Protocol],
        end: ChannelEnd,
        handler: object,
        *,
        in_flight: int = IN_FLIGHT,
    ) -> Self:
        """Create the object from a subclass that has a method for each event of the protocol."""
        del end, handler, in_flight
        made: Self = object.__new__(stub_class(cls, protocol, (EVENT,)))
        return made

    def __init__(
        self,
        protocol: type[Protocol],
        end: ChannelEnd,
        handler: object,
        *,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self._handlers = handlers_of(protocol, handler)
        self._on_unknown = getattr(handler, "on_unknown_method", None)
        self._protocol = protocol
        self._endpoint = AsyncEndpoint(protocol, end, is_server=True)
        self._in_flight = in_flight
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()
        self._closed = False
        self._turns = 0

    async def serve(self) -> None:
        """Serve until the peer closes the channel or `close` is called.

        Raises:
            PeerError: The peer broke FIDL's rules.
            BaseException: The exception of a handler.
        """
        try:
            while (incoming := await self._next()) is not None:
                await self._dispatch(incoming)
        except asyncio.CancelledError:
            self.close()
            raise
        except BaseException as error:
            self.close(status_of(error))
            raise
        finally:
            self.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def close(self, status: int | None = None) -> None:
        """Close the channel.

        Args:
            status: The status of the epitaph; None sends no epitaph.
        """
        if self._closed:
            return
        self._closed = True
        if status is not None and not self._endpoint.socket.must_flush():
            try:
                self._endpoint.write_epitaph(status, DONTWAIT)
            except (FidlError, BlockingIOError):
                pass  # The client doesn't read, so there is no room for an epitaph.
        self._endpoint.close()
        self._wake.set()

    async def _send(self, method: Method, payload: Any, members: Mapping[str, Any]) -> None:
        """Send an event."""
        payload = payload_of(method.response, method.name, payload, members)
        await self._write(method.ordinal, EVENT_MESSAGE, 0, message_of(method, 0, payload))

    async def _write(self, ordinal: int, kind: int, txid: int, message: Message) -> None:
        if self._closed:
            raise ClosedError(by_us=True)
        await self._endpoint.write(self._endpoint.methods[ordinal], kind, txid, message)

    async def _next(self) -> Incoming | None:
        """Wait until another handler may run; return the next message."""
        self._turns += 1
        if self._turns % _AT_A_TIME == 0:
            await asyncio.sleep(0)
        while True:
            if self._failure is not None:
                raise self._failure
            if self._closed:
                return None
            if len(self._tasks) < self._in_flight:
                try:
                    incoming, self._endpoint.pending = self._endpoint.read(), None
                    return incoming
                except BlockingIOError:
                    self._endpoint.on_readable(self._wake.set)
                except WireError as error:
                    raise PeerError(str(error)) from error
            self._wake.clear()
            await self._wake.wait()
            self._endpoint.off_readable()

    async def _dispatch(self, incoming: Incoming) -> None:
        """Call a handler, or start a task for a handler that is a coroutine function."""
        try:
            method = interaction(self._protocol, incoming.header)
        except PeerError:
            incoming.drop()
            raise
        if method is not None and inspect.iscoroutinefunction(self._handlers[method.ordinal]):
            self._begin(method, self._handle(method, incoming))
        else:
            await self._handle(method, incoming)

    def _begin(self, method: Method, work: Coroutine[Any, Any, None]) -> None:
        """Start a task. An exception of the task ends the server."""
        name = f"{self._protocol.__name__}.{method.name}"
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            error: BaseException | None = FidlError(f"the task of {task.get_name()} was cancelled")
        else:
            error = task.exception()
        if error is not None and not self._closed:
            self._failure = self._failure or error
        self._wake.set()

    async def _handle(self, method: Method | None, incoming: Incoming) -> None:
        span = incoming.span
        if span is None:
            await self._answer(method, incoming)
            return
        with span:
            await self._answer(method, incoming)

    async def _answer(self, method: Method | None, incoming: Incoming) -> None:
        txid = incoming.header.txid
        try:
            if method is None:
                await self._answer_unknown(incoming)
                return
            message = await self._handled(method, incoming)
            if message is not None:
                await self._write(method.ordinal, REPLY, txid, message)
        except ClosedError:
            if not self._closed:
                return  # the client has disconnected

    async def _handled(self, method: Method, incoming: Incoming) -> Message | None:
        """Run the handler, and return its reply."""
        txid = incoming.header.txid
        try:
            request = request_in(method, incoming)
        except WireError as error:
            raise PeerError(str(error)) from error
        arguments = () if method.request is None else (request,)
        try:
            value = self._handlers[method.ordinal](*arguments)
            if inspect.isawaitable(value):
                value = await value
        except DomainError as error:
            if method.kind != TWO_WAY:
                raise FidlError(f"{method.name} is one-way: it has no errors") from error
            return error_reply_of(method, txid, error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            problem = f"the handler of {method.name} waited for something that was cancelled"
            raise FidlError(problem) from error
        if method.kind != TWO_WAY:
            return None
        if isinstance(value, Deferred):
            self._begin(method, self._answer_later(method, txid, value))
            return None
        return reply_of(method, txid, value)

    async def _answer_later(self, method: Method, txid: int, deferred: Deferred) -> None:
        value, error = await _answered(deferred)
        if error is None:
            message = reply_of(method, txid, value)
        else:
            message = error_reply_of(method, txid, error)
        try:
            await self._write(method.ordinal, REPLY, txid, message)
        except ClosedError:
            return  # the client has disconnected

    async def _answer_unknown(self, incoming: Incoming) -> None:
        header = incoming.header
        for handle in incoming.handles:
            handle.close()
        if self._on_unknown is not None:
            self._on_unknown(header.ordinal)
        if header.txid:
            await self._write(header.ordinal, REPLY, header.txid, unknown_reply_of(header))


def _answered(deferred: Deferred) -> asyncio.Future[tuple[Any, DomainError | None]]:
    """Return a future for the answer of a Deferred; any thread may resolve the Deferred."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[Any, DomainError | None]] = loop.create_future()

    def resolve(value: Any, error: DomainError | None) -> None:
        if not future.done():
            future.set_result((value, error))

    def answer(value: Any, error: DomainError | None) -> None:
        try:
            loop.call_soon_threadsafe(resolve, value, error)
        except RuntimeError:
            return  # A closed loop has closed the channel too.

    deferred.bind(answer)
    return future
