"""The client for asyncio: any number of tasks may call it, over one channel.

    async with AsyncClient(Calculator, connect(path)) as calculator:
        answer = await calculator.Add(a=1, b=2)

A cancelled call no longer waits; its reply is dropped when it comes.

While a task waits for a reply or an event, the loop keeps the client alive. At other times a client
without references is deleted, and closes its channel.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, Self

from stretto.base.rpc_hooks import ONE_WAY as ONE_WAY_MESSAGE
from stretto.base.rpc_hooks import REQUEST
from stretto_fidl.bindings.protocols import ONE_WAY, TWO_WAY
from stretto_fidl.codec.wire_error import WireError
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.async_endpoint import AsyncEndpoint
from stretto_fidl.transport.client import event_caller
from stretto_fidl.transport.conversation import EVENT_LIMIT, Conversation, EventMessage
from stretto_fidl.transport.errors import ClosedError, PeerError
from stretto_fidl.transport.interaction import two_way
from stretto_fidl.transport.results import message_of, payload_of, reply_in
from stretto_fidl.transport.stubs import stub_class

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from stretto.base.rpc_hooks import MessageSpan
    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Method, Protocol
    from stretto_fidl.transport.endpoint import Incoming

_AT_A_TIME: Final = 64
"""Messages that are read before other callbacks of the loop run."""


class _Waiter:
    """A task that waits for a reply."""

    __slots__ = ("future", "method")

    def __init__(self, method: Method) -> None:
        self.method = method
        self.future: asyncio.Future[Incoming] = asyncio.get_running_loop().create_future()

    def resolve(self, incoming: Incoming) -> None:
        """Give the reply to the waiting task (see `conversation.Waiter`)."""
        if not self.future.done():
            self.future.set_result(incoming)
        elif not incoming.taken:
            incoming.drop()

    def fail(self, error: FidlError) -> None:
        """Raise an error in the waiting task (see `conversation.Waiter`)."""
        if not self.future.done():
            self.future.set_exception(error)
            # If the caller was cancelled, nothing else reads the exception, and asyncio would log
            # the exception.
            self.future.exception()

    def leave(self) -> None:
        """Stop waiting for the reply."""
        if not self.future.cancelled() and self.future.done() and not self.future.exception():
            self.future.result().drop()


class _OnReadable:
    """The callback that the loop calls when a client's socket is readable.

    It is also a context manager: it keeps the client alive while some task waits in the context.

    Args:
        method: The method of the client to call.
    """

    __slots__ = ("_kept", "_method", "_waiting")

    def __init__(self, method: Callable[[], None]) -> None:
        self._method = weakref.WeakMethod(method)
        self._kept: Callable[[], None] | None = None
        self._waiting = 0

    def __call__(self) -> None:
        method = self._method()
        if method is not None:
            method()

    def __enter__(self) -> None:
        self._waiting += 1
        self._kept = self._method()

    def __exit__(self, *exception: object) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._kept = None


class AsyncClient:
    """A client of a protocol, with a coroutine function for each one-way and two-way method.

    Results and errors are those of `Client`. For time limits use those of asyncio.

    Args:
        protocol: The class of the protocol.
        end: The end of the channel; this object closes it.
        event_limit: The maximum length of the queue of events; when it is full, the oldest event is
            dropped.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __new__(
        cls, protocol: type[Protocol], end: ChannelEnd, *, event_limit: int = EVENT_LIMIT
    ) -> Self:
        """Create the object from a subclass that has a stub for each method with a request."""
        del end, event_limit
        made: Self = object.__new__(stub_class(cls, protocol, (ONE_WAY, TWO_WAY)))
        return made

    def __init__(
        self, protocol: type[Protocol], end: ChannelEnd, *, event_limit: int = EVENT_LIMIT
    ) -> None:
        self._conversation = Conversation(protocol, used=end.used, event_limit=event_limit)
        self._endpoint = AsyncEndpoint(protocol, end, is_server=False)
        self._event_came = asyncio.Event()
        self._in_use = _OnReadable(self._on_readable)
        self._endpoint.on_readable(self._in_use)

    async def call(self, name: str, payload: Any = None) -> Any:
        """Call a two-way method by its name.

        Args:
            name: The name in the definition.
            payload: The request's payload; None without a payload.

        Raises:
            FidlError: The protocol has no such method, or the method has no reply.
        """
        return await self._traced_call(two_way(self._conversation.protocol, name), payload, {})

    async def _call(self, method: Method, payload: Any, members: Mapping[str, Any]) -> Any:
        txid, waiter, span = await self._request(method, payload, members)
        if span is not None:
            with span:
                pass
        return await self._reply(txid, waiter)

    async def _traced_call(self, method: Method, payload: Any, members: Mapping[str, Any]) -> Any:
        txid, waiter, span = await self._request(method, payload, members)
        if span is None:
            return await self._reply(txid, waiter)
        with span:
            return await self._reply(txid, waiter)

    async def _send(self, method: Method, payload: Any, members: Mapping[str, Any]) -> None:
        payload = payload_of(method.request, method.name, payload, members)
        self._conversation.check_open()
        facts, message = self._endpoint.methods[method.ordinal], message_of(method, 0, payload)
        try:
            await self._endpoint.write(facts, ONE_WAY_MESSAGE, 0, message)
        except ClosedError:
            self._read_to_the_end()
            raise

    async def _request(
        self, method: Method, payload: Any, members: Mapping[str, Any]
    ) -> tuple[int, _Waiter, MessageSpan | None]:
        conversation, waiter = self._conversation, _Waiter(method)
        conversation.check_open()
        payload = payload_of(method.request, method.name, payload, members)
        message = message_of(method, txid := conversation.own.allocate(), payload)
        conversation.waiters[txid] = waiter
        try:
            facts = self._endpoint.methods[method.ordinal]
            return txid, waiter, await self._endpoint.write(facts, REQUEST, txid, message)
        except ClosedError:
            conversation.waiters.pop(txid, None)
            self._read_to_the_end()
            raise
        except BaseException:
            conversation.waiters.pop(txid, None)
            raise

    async def _reply(self, txid: int, waiter: _Waiter) -> Any:
        try:
            with self._in_use:
                incoming = await waiter.future
        except BaseException:
            self._conversation.waiters.pop(txid, None)
            waiter.leave()
            raise
        incoming.arrive()
        try:
            return reply_in(waiter.method, incoming)
        except WireError as error:
            raise self._ended(error) from error

    def _on_readable(self) -> None:
        for _ in range(_AT_A_TIME):
            if not self._read_one():
                return

    def _read_one(self) -> bool:
        """Read one message; return False if no message was there or the channel has ended."""
        try:
            incoming = self._endpoint.read()
            if incoming is None:
                raise ClosedError
            if self._conversation.take(incoming):
                self._event_came.set()
            self._endpoint.pending = None
        except BlockingIOError:
            return False
        except FidlError as error:
            self._end(error)
            return False
        return True

    def _read_to_the_end(self) -> None:
        """Read the last messages of the peer, which has closed the channel.

        One of the messages may be an epitaph.
        """
        while self._conversation.error is None and self._read_one():
            continue
        self._conversation.check_open()

    def _end(self, error: FidlError) -> None:
        self._conversation.end(error)
        self._event_came.set()
        self._endpoint.close()

    def _ended(self, error: WireError) -> PeerError:
        """End the channel because a message can't be decoded; return the error to raise."""
        failure = PeerError(str(error))
        self._end(failure)
        return failure

    @property
    def lost_events(self) -> int:
        """The number of events dropped because the queue was full."""
        return self._conversation.lost_events

    async def next_event(self) -> EventMessage | None:
        """Wait for the next event and return it; None if the channel has ended without an epitaph.

        Raises:
            ClosedError: The channel has ended with an epitaph.
        """
        incoming = await self._next_event()
        if incoming is None:
            return None
        incoming.arrive()
        return self._decoded(incoming)

    async def events(self) -> AsyncIterator[EventMessage]:
        """Iterate over the events until the channel ends."""
        while (event := await self.next_event()) is not None:
            yield event

    async def dispatch_events(self, handler: object) -> None:
        """Call a method of an object for each event, until the channel ends.

        Args:
            handler: An object as for `Client.dispatch_events`, whose methods may be coroutine
                functions.
        """
        call = event_caller(self._conversation.protocol, handler)
        while (incoming := await self._next_event()) is not None:
            with incoming.span or nullcontext():
                result = call(self._decoded(incoming))
                if asyncio.iscoroutine(result):
                    await result

    async def _next_event(self) -> Incoming | None:
        conversation = self._conversation
        while not conversation.events:
            if conversation.error is not None:
                conversation.raise_unless_closed_normally()
                return None
            self._event_came.clear()
            with self._in_use:
                await self._event_came.wait()
        return conversation.next_event()

    def _decoded(self, incoming: Incoming) -> EventMessage:
        try:
            return self._conversation.decode_event(incoming)
        except WireError as error:
            raise self._ended(error) from error

    def detach(self) -> ChannelEnd:
        """Return the channel end without closing it, for example to send it on.

        The client can't be used afterwards.

        Raises:
            FidlError: Calls are under way.
        """
        self._conversation.check_open()
        if self._conversation.waiters:
            raise FidlError("calls are under way: their replies would get lost")
        self._conversation.end(ClosedError(by_us=True))
        self._event_came.set()
        return self._endpoint.detach()

    def close(self) -> None:
        """Close the channel. Waiting calls raise ClosedError."""
        self._end(ClosedError(by_us=True))
        while self._conversation.events:
            self._conversation.events.popleft().drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close()
