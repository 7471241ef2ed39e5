"""The blocking client: any number of threads may call it, over one channel.

    with Client(Calculator, connect(path)) as calculator:
        answer = calculator.Add(a=1, b=2)

The client starts no thread. One of the waiting threads reads the messages for all of them. When its
own reply has come, another waiting thread reads.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

from stretto.base.rpc_hooks import ONE_WAY as ONE_WAY_MESSAGE
from stretto.base.rpc_hooks import REQUEST
from stretto_fidl.bindings.protocols import ONE_WAY, TWO_WAY
from stretto_fidl.codec.wire_error import WireError
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.blocking_endpoint import BlockingEndpoint
from stretto_fidl.transport.conversation import EVENT_LIMIT, Conversation, EventMessage
from stretto_fidl.transport.deadline import deadline_of, is_over, seconds_left
from stretto_fidl.transport.errors import CallTimeoutError, ClosedError, PeerError
from stretto_fidl.transport.interaction import handlers_of, two_way
from stretto_fidl.transport.results import message_of, numbered, payload_of, reply_in
from stretto_fidl.transport.stubs import stub_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stretto.base.rpc_hooks import MessageSpan
    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Method, Protocol
    from stretto_fidl.codec.message import Message
    from stretto_fidl.transport.endpoint import Incoming


class _Waiter:
    """A thread that waits for a reply, or for an event if `method` is None."""

    __slots__ = ("_wake", "done", "error", "incoming", "method", "txid")

    def __init__(self, method: Method | None) -> None:
        self.method: Any = method
        self.txid = 0
        self.incoming: Incoming | None = None
        self.error: FidlError | None = None
        self.done = False
        self._wake = threading.Lock()
        self._wake.acquire()

    def resolve(self, incoming: Incoming | None) -> None:
        """Store the message for the waiting thread and wake it (see `conversation.Waiter`)."""
        self.incoming, self.done = incoming, True
        self.wake()

    def fail(self, error: FidlError) -> None:
        """Store an error for the waiting thread and wake it (see `conversation.Waiter`)."""
        self.error, self.done = error, True
        self.wake()

    def wake(self) -> None:
        """Wake the thread, because its wait is over or it has to read.

        The caller holds the client's lock.
        """
        if self._wake.locked():
            self._wake.release()

    def sleep(self, deadline: float | None) -> None:
        """Block until `wake` is called or the deadline has passed."""
        while not self._wake.acquire(timeout=seconds_left(deadline)):
            if is_over(deadline):
                raise CallTimeoutError("nothing came in time")


class Client:
    """A client of a protocol, with a method for each of its one-way and two-way methods.

    A two-way call returns the payload of the reply. If the method declares an error type, the
    call returns the payload of a successful reply. It raises

    - TypeError, WireError: the payload is of another class, or breaks its type; nothing was sent,
    - DomainError: the method's own error,
    - UnknownMethodError: the server's protocol doesn't have the method,
    - CallTimeoutError: there was no reply, or no room for the request, in time,
    - ClosedError: the channel has ended, with the status of the server's epitaph,
    - PeerError: the server broke FIDL's rules, which ends the channel for every caller.

    Args:
        protocol: The class of the protocol.
        end: The end of the channel; this object closes it.
        timeout: The time limit in seconds, for a reply, or for room to write a one-way message;
            None waits for ever.
        event_limit: The maximum length of the queue of events; when it is full, the oldest event is
            dropped.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __new__(
        cls,
        protocol: type[Protocol],
        end: ChannelEnd,
        *,
        timeout: float | None = None,
        event_limit: int = EVENT_LIMIT,
    ) -> Self:
        """Create an object of a generated subclass.

        The subclass has a Python method for each method of the protocol that has a request.
        """
        del end, timeout, event_limit
        made: Self = object.__new__(stub_class(cls, protocol, (ONE_WAY, TWO_WAY)))
        return made

    def __init__(
        self,
        protocol: type[Protocol],
        end: ChannelEnd,
        *,
        timeout: float | None = None,
        event_limit: int = EVENT_LIMIT,
    ) -> None:
        self._conversation = Conversation(protocol, used=end.used, event_limit=event_limit)
        self._endpoint = BlockingEndpoint(protocol, end, is_server=False)
        self._timeout = timeout
        self._lock = threading.RLock()  # reentrant, because a signal handler may call `close`
        self._waiting: set[_Waiter] = set()
        self._reader: _Waiter | None = None

    def call(self, name: str, payload: Any = None, *, timeout: float | None = None) -> Any:
        """Call a two-way method by its name.

        Args:
            name: The name in the definition.
            payload: The request's payload; None without a payload.
            timeout: The time limit in seconds; None stands for the time limit of the client.

        Raises:
            FidlError: The protocol has no such method, or the method has no reply.
        """
        method = two_way(self._conversation.protocol, name)
        return self._traced_call(method, payload, {}, timeout)

    def _call(self, method: Method, payload: Any, members: Mapping[str, Any]) -> Any:
        deadline = deadline_of(self._timeout)
        waiter, span = self._request(method, payload, members, deadline)
        if span is not None:
            with span:
                pass
        return self._reply(waiter, deadline)

    def _traced_call(
        self, method: Method, payload: Any, members: Mapping[str, Any], timeout: float | None = None
    ) -> Any:
        deadline = deadline_of(self._timeout if timeout is None else timeout)
        waiter, span = self._request(method, payload, members, deadline)
        if span is None:
            return self._reply(waiter, deadline)
        with span:
            return self._reply(waiter, deadline)

    def _send(self, method: Method, payload: Any, members: Mapping[str, Any]) -> None:
        payload = payload_of(method.request, method.name, payload, members)
        message = message_of(method, 0, payload)
        self._conversation.check_open()
        deadline, facts = deadline_of(self._timeout), self._endpoint.methods[method.ordinal]
        try:
            self._endpoint.write(facts, ONE_WAY_MESSAGE, lambda: (0, message), deadline=deadline)
        except ClosedError:
            self._read_to_the_end()
            raise

    def _request(
        self, method: Method, payload: Any, members: Mapping[str, Any], deadline: float | None
    ) -> tuple[_Waiter, MessageSpan | None]:
        payload = payload_of(method.request, method.name, payload, members)
        message = message_of(method, 0, payload)
        conversation, waiter = self._conversation, _Waiter(method)

        def number() -> tuple[int, Message]:
            with self._lock:
                conversation.check_open()
                waiter.txid = conversation.assigned.allocate()
                conversation.waiters[waiter.txid] = waiter
            return waiter.txid, numbered(message, waiter.txid)

        facts = self._endpoint.methods[method.ordinal]
        try:
            return waiter, self._endpoint.write(facts, REQUEST, number, deadline=deadline)
        except ClosedError:
            self._remove_waiter(waiter)
            self._read_to_the_end()
            raise
        except BaseException:
            self._remove_waiter(waiter)
            raise

    def _reply(self, waiter: _Waiter, deadline: float | None) -> Any:
        try:
            self._wait(waiter, deadline)
        except BaseException:
            self._remove_waiter(waiter)
            raise
        if waiter.error is not None:
            raise waiter.error
        incoming = waiter.incoming
        assert incoming is not None
        incoming.arrive()
        try:
            return reply_in(waiter.method, incoming)
        except WireError as error:
            raise self._ended(error) from error

    def _remove_waiter(self, waiter: _Waiter) -> None:
        """Remove a waiter that has stopped waiting."""
        with self._lock:
            self._conversation.waiters.pop(waiter.txid, None)
        if waiter.incoming is not None:
            waiter.incoming.drop()

    def _wait(
        self, waiter: _Waiter, deadline: float | None, is_there: Callable[[], bool] = bool
    ) -> None:
        """Wait until a waiter is done. Meanwhile read messages, unless another thread does.

        Args:
            waiter: The waiter of the calling thread.
            deadline: The end of the wait.
            is_there: A function that returns whether the wait is over; called under the lock.
        """
        try:
            try:
                with self._lock:
                    waiter.done = waiter.done or is_there()
                    self._waiting.add(waiter)
                self._read_or_sleep(waiter, deadline)
            finally:
                self._hand_over_reading(waiter)
        except BaseException:
            # A signal handler may interrupt the `finally` block, too.
            self._hand_over_reading(waiter)
            raise

    def _read_or_sleep(self, waiter: _Waiter, deadline: float | None) -> None:
        while not waiter.done:
            with self._lock:
                if self._reader is None and not waiter.done:
                    self._reader = waiter
            if self._reader is waiter:
                while not waiter.done:
                    self._read_one(deadline)
            elif not waiter.done:
                waiter.sleep(deadline)

    def _hand_over_reading(self, waiter: _Waiter) -> None:
        """Remove a waiter. If no thread reads messages now, wake another waiter to read them."""
        with self._lock:
            self._waiting.discard(waiter)
            if self._reader is waiter:
                self._reader = None
            if self._reader is None:
                for other in self._waiting:
                    other.wake()
                    break

    def _read_one(self, deadline: float | None) -> None:
        try:
            incoming = self._endpoint.read(deadline)
            if incoming is None:
                raise ClosedError
            with self._lock:
                if self._conversation.take(incoming):
                    self._wake_for_event()
                self._endpoint.pending = None
        except CallTimeoutError:
            raise
        except FidlError as error:
            self._end(error)

    def _read_to_the_end(self) -> None:
        """Read the last messages of the peer, which has closed the channel.

        One of the messages may be an epitaph.
        """
        conversation = self._conversation
        while True:
            conversation.check_open()
            self._wait(_Waiter(None), None, lambda: conversation.error is not None)

    def _end(self, error: FidlError) -> None:
        with self._lock:
            self._conversation.end(error)
            self._wake_for_event()
        self._endpoint.close()

    def _ended(self, error: WireError) -> PeerError:
        """End the channel because a message can't be decoded; return the error to raise."""
        failure = PeerError(str(error))
        self._end(failure)
        return failure

    def _wake_for_event(self) -> None:
        """Wake all threads that wait for an event."""
        for waiter in self._waiting:
            if waiter.method is None and not waiter.done:
                waiter.resolve(None)

    @property
    def lost_events(self) -> int:
        """The number of events dropped because the queue was full."""
        return self._conversation.lost_events

    def next_event(self, timeout: float | None = None) -> EventMessage | None:
        """Wait for the next event and return it; None if the channel has ended without an epitaph.

        Args:
            timeout: The time limit in seconds; None waits for ever.

        Raises:
            CallTimeoutError: No event came in time.
            ClosedError: The channel has ended with an epitaph.
            PeerError: The server broke FIDL's rules.
        """
        incoming = self._next_event(timeout)
        if incoming is None:
            return None
        incoming.arrive()
        return self._decoded(incoming)

    def events(self) -> Iterator[EventMessage]:
        """Iterate over the events until the channel ends."""
        while (event := self.next_event()) is not None:
            yield event

    def dispatch_events(self, handler: object) -> None:
        """Call a method of an object for each event, until the channel ends.

        Args:
            handler: An object with a method for each event, named like the event (`from_` for
                `from`). The method takes the payload as its argument if the event has a payload.
                The object may have `on_unknown_event(ordinal)`.

        Raises:
            FidlError: The handler has no method for some event; no event was removed from the
                queue.
            ClosedError: The channel has ended with an epitaph.
            PeerError: The server broke FIDL's rules.
        """
        call = event_caller(self._conversation.protocol, handler)
        while (incoming := self._next_event(None)) is not None:
            with incoming.span or nullcontext():
                call(self._decoded(incoming))

    def _next_event(self, timeout: float | None) -> Incoming | None:
        deadline, conversation = deadline_of(timeout), self._conversation
        while True:
            with self._lock:
                if conversation.events:
                    return conversation.next_event()
                if conversation.error is not None:
                    conversation.raise_unless_closed_normally()
                    return None
            self._wait(_Waiter(None), deadline, conversation.has_event_or_end)

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
        with self._lock:
            self._conversation.check_open()
            if self._conversation.waiters or self._waiting:
                raise FidlError("calls are under way: their replies would get lost")
            self._conversation.end(ClosedError(by_us=True))
        return self._endpoint.detach()

    def close(self) -> None:
        """Close the channel. Waiting calls raise ClosedError."""
        self._end(ClosedError(by_us=True))
        while self._conversation.events:
            self._conversation.events.popleft().drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def event_caller(protocol: type[Protocol], handler: object) -> Callable[[EventMessage], Any]:
    """Return a function that calls the method of an object for each event.

    Raises:
        FidlError: The object has no method for some event.
    """
    handlers = handlers_of(protocol, handler, events=True)
    unknown = getattr(handler, "on_unknown_event", None)

    def call(event: EventMessage) -> Any:
        if not event.name:
            return None if unknown is None else unknown(event.ordinal)
        method = handlers[event.ordinal]
        return method() if event.payload is None else method(event.payload)

    return call
