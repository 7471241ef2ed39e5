"""The blocking server: it serves one channel in the thread that calls `serve`.

    class Handler:
        def Add(self, request):
            return AddResponse(sum=request.a + request.b)

    Server(Calculator, end, Handler()).serve()

A handler gets the payload of the request, if there is one. It returns the payload of the reply, or
of success if the method has errors. It may raise DomainError for the method's own error, or return
a Deferred to reply later. Any other exception closes the channel with the epitaph INTERNAL, and
`serve` raises it. A mistake of the peer closes the channel, too; `serve` raises PeerError.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Self

from stretto.base.rpc_hooks import EVENT as EVENT_MESSAGE
from stretto.base.rpc_hooks import REPLY
from stretto_fidl.bindings.protocols import EVENT, TWO_WAY
from stretto_fidl.codec.message import close_all
from stretto_fidl.codec.wire_error import WireError
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.blocking_endpoint import BlockingEndpoint
from stretto_fidl.transport.deferred import Deferred
from stretto_fidl.transport.errors import ClosedError, DomainError, PeerError
from stretto_fidl.transport.interaction import handlers_of, interaction, status_of
from stretto_fidl.transport.results import (
    error_reply_of,
    message_of,
    payload_of,
    reply_of,
    request_in,
    unknown_reply_of,
)
from stretto_fidl.transport.stubs import stub_class

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto_fidl.bindings.objects import ChannelEnd
    from stretto_fidl.bindings.protocols import Method, Protocol
    from stretto_fidl.codec.headers import TransactionHeader
    from stretto_fidl.codec.message import Message
    from stretto_fidl.transport.endpoint import Incoming

IN_FLIGHT: Final = 1024
"""The limit of unanswered calls; at the limit, no more messages are read."""


class Server:
    """A server of one channel. A method for each event sends that event.

    Args:
        protocol: The class of the protocol.
        end: The end of the channel; this object closes it.
        handler: An object with a method for each method of the protocol. It may have
            `on_unknown_method(ordinal)`.
        in_flight: The maximum number of deferred calls at a time. While so many wait, no message is
            read.

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
        self._endpoint = BlockingEndpoint(protocol, end, is_server=True)
        self._in_flight = threading.Semaphore(in_flight)
        self._lock = threading.RLock()  # reentrant, because a signal handler may call `close`
        self._failure: BaseException | None = None
        self._closed = False

    def serve(self) -> None:
        """Serve until the peer closes the channel or `close` is called.

        Raises:
            PeerError: The peer broke FIDL's rules.
            BaseException: The exception of a handler.
        """
        try:
            while (incoming := self._read()) is not None:
                self._handle(incoming)
            if self._failure is not None:
                raise self._failure
        except BaseException as error:
            self.close(status_of(error))
            raise
        self.close()

    def close(self, status: int | None = None) -> None:
        """Close the channel, from any thread.

        Args:
            status: The status of the epitaph; None sends no epitaph.
        """
        with self._lock:
            closed, self._closed = self._closed, True
        if closed:
            if self._endpoint.is_closing:
                # An earlier `close`, in a signal handler of this thread, may have left the socket
                # open.
                self._endpoint.close()
            return  # another thread is writing the epitaph
        if status is not None:
            self._endpoint.try_write_epitaph(status, patience=_EPITAPH_PATIENCE_S)
        self._in_flight.release()  # wakes `serve`, which may be waiting for a deferred call to end
        self._endpoint.close()

    def _send(self, method: Method, payload: Any, members: Mapping[str, Any]) -> None:
        """Send an event."""
        payload = payload_of(method.response, method.name, payload, members)
        self._write(method, EVENT_MESSAGE, 0, message_of(method, 0, payload))

    def _write(self, method: Method, kind: int, txid: int, message: Message) -> None:
        facts = self._endpoint.methods[method.ordinal]
        self._endpoint.write(facts, kind, lambda: (txid, message))

    def _end_is_ours(self) -> bool:
        return self._closed

    def _read(self) -> Incoming | None:
        if self._end_is_ours():
            return None
        try:
            incoming, self._endpoint.pending = self._endpoint.read(), None
        except FidlError as error:
            if self._end_is_ours() or isinstance(error, ClosedError):
                return None
            if isinstance(error, WireError):
                raise PeerError(str(error)) from error
            raise
        return incoming

    def _handle(self, incoming: Incoming) -> None:
        span = incoming.span
        if span is None:
            self._answer(incoming)
            return
        with span:
            self._answer(incoming)

    def _answer(self, incoming: Incoming) -> None:
        header, method = incoming.header, None
        try:
            method = interaction(self._protocol, header)
        finally:
            if method is None:
                close_all(incoming.handles)
        if method is None:
            self._answer_unknown(header)
            return
        try:
            request = request_in(method, incoming)
        except WireError as error:
            raise PeerError(str(error)) from error
        arguments = () if method.request is None else (request,)
        try:
            value = self._handlers[method.ordinal](*arguments)
        except DomainError as error:
            self._reply(method, header.txid, None, error)
            return
        if isinstance(value, Deferred) and method.kind == TWO_WAY:
            self._reply_later(method, header.txid, value)
        elif method.kind == TWO_WAY:
            self._reply(method, header.txid, value, None)

    def _answer_unknown(self, header: TransactionHeader) -> None:
        if self._on_unknown is not None:
            self._on_unknown(header.ordinal)
        if header.txid:
            try:
                reply = header.txid, unknown_reply_of(header)
                self._endpoint.write(self._endpoint.methods[header.ordinal], REPLY, lambda: reply)
            except ClosedError:
                return

    def _reply(self, method: Method, txid: int, value: Any, error: DomainError | None) -> None:
        if method.kind != TWO_WAY:
            raise FidlError(f"{method.name} is one-way: it has no errors") from error
        if error is None:
            message = reply_of(method, txid, value)
        else:
            message = error_reply_of(method, txid, error)
        try:
            self._write(method, REPLY, txid, message)
        except ClosedError:
            return  # The client has disconnected, so the reply can't be sent.

    def _reply_later(self, method: Method, txid: int, deferred: Deferred) -> None:
        self._in_flight.acquire()

        def answer(value: Any, error: DomainError | None) -> None:
            self._in_flight.release()
            try:
                self._reply(method, txid, value, error)
            except BaseException as failure:
                self._failure = failure
                self.close(status_of(failure))
                raise

        deferred.bind(answer)


_EPITAPH_PATIENCE_S = 1.0
