"""Flows of gRPC (the package grpcio): an interceptor for each side.

    channel = grpc.intercept_channel(channel, FlowClientInterceptor())
    server = grpc.server(pool, interceptors=[FlowServerInterceptor()])

gRPC multiplexes, reconnects and retries below its interceptors, so messages can't be counted here.
The flow's id is made from the `traceparent` in the call's metadata, which an interceptor of
OpenTelemetry may have added before; then no byte is added. Without a `traceparent`,
`FlowClientInterceptor(add_header=True)` adds the entry `x-stretto-flow`, from which the id is made.

A call is a slice while its stub blocks; its handling is a slice while the handler runs. The
messages of streaming calls aren't recorded: the reply represents the end of the call.

gRPC itself generates a status at the client for a deadline or an unreachable server. A call with
such a status has no reply in the trace, because the server may not have sent the status.

The code per call is short, and allocates few objects: right after a thread switch a line takes
three to four times as long as in a loop.
"""

from __future__ import annotations

from collections import namedtuple
from contextlib import suppress
from functools import lru_cache, update_wrapper
from sys import exception

import grpc

from stretto.base import rpc_hooks
from stretto.flows import exchange
from stretto.flows.tracer import incoming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Wrap = Callable[[Callable[..., Any], exchange.TracedMethod], Callable[..., Any]]

_FIELDS = ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")

_MAX_METHODS = 1024

_new_tuple: Any = tuple.__new__
"""Takes half of the time of the class's own constructor."""
_RpcError = grpc.RpcError
_AbortError = grpc.aio.AbortError

MAYBE_LOCAL = frozenset(
    (
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
    )
)
"""Status codes that the client's own side may generate."""


class Details(namedtuple("Details", _FIELDS), grpc.ClientCallDetails):  # type: ignore[misc]  # noqa: PYI024
    """The details of a call, which interceptors pass to the next one."""


@lru_cache(_MAX_METHODS)
def method_at(path: str, category: str) -> exchange.TracedMethod:
    """Return the method for a path like `/package.Service/Method`."""
    service, _, method = path.strip("/").rpartition("/")
    return exchange.traced_method(category, service, method)


def with_metadata(details: Any, metadata: Any) -> Any:
    """Return a copy of a call's details, with other metadata."""
    return _new_tuple(
        Details,
        (
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            details.wait_for_ready,
            details.compression,
        ),
    )


def _replied(call: Any, method: exchange.TracedMethod, key: int) -> None:
    """Record the reply of a client's ended call, if the server is known to have sent one."""
    # Test the type first: code() takes a lock, and is needed only for calls that may have failed. A
    # failed streaming call is an _RpcError, too.
    if not isinstance(call, _RpcError) or call.code() not in MAYBE_LOCAL:
        method.received_reply.instant(terminating_flow=key or exchange.no_flow())


# The base classes are untyped: grpcio has no type annotations.
class FlowClientInterceptor(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
    grpc.StreamStreamClientInterceptor,  # type: ignore[misc]
):
    """Traces the calls of a channel.

    Args:
        add_header: Whether to add `x-stretto-flow` to calls without a `traceparent`.
        category: The category of the calls.
    """

    def __init__(self, *, add_header: bool = False, category: str = "grpc") -> None:
        self._switch = rpc_hooks.switch(category)
        self._add_header = add_header
        self._category = category

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """Implement `grpc.UnaryUnaryClientInterceptor.intercept_unary_unary`."""
        if not self._switch.enabled:
            return continuation(details, request)
        metadata = details.metadata
        if metadata is not None and type(metadata) is not tuple and type(metadata) is not list:
            metadata = tuple(metadata)  # An iterator can be read only once.
            details = with_metadata(details, metadata)
        key = exchange.request_key(metadata) if metadata else 0
        if not key and self._add_header:
            text, key = exchange.new_flow()
            details = with_metadata(details, (*(metadata or ()), (exchange.FLOW_HEADER, text)))
        method = method_at(details.method, self._category)
        with method.sent_request.slice(exchange.cause(), flow=key or exchange.no_flow()):
            call = continuation(details, request)
            try:
                done = call.done()
            except AttributeError:
                return call  # An iterator made by another interceptor can't report its end.
            if done:
                _replied(call, method, key)
                return call
        call.add_done_callback(lambda call: _replied(call, method, key))
        return call

    intercept_unary_stream = intercept_unary_unary
    intercept_stream_unary = intercept_unary_unary
    intercept_stream_stream = intercept_unary_unary


class FlowServerInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """Traces the calls that a server handles.

    Args:
        category: The category of the calls.
    """

    def __init__(self, *, category: str = "grpc") -> None:
        self._switch = rpc_hooks.switch(category)
        self._handlers = TracedHandlers(category, single, streaming)

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Implement `grpc.ServerInterceptor.intercept_service`."""
        handler = continuation(details)
        if handler is None or not self._switch.enabled:
            return handler
        return self._handlers.like(handler, details.method)


class TracedHandlers:
    """Traced versions of a server's handlers, cached by path.

    Args:
        category: The category of the calls.
        single: Wraps a function that returns the reply.
        streaming: Wraps a function that returns an iterator.
    """

    def __init__(self, category: str, single: Wrap, streaming: Wrap) -> None:
        self._category = category
        self._wraps = single, streaming
        self._made: dict[str, tuple[Any, Any]] = {}

    def like(self, handler: Any, path: str) -> Any:
        """Return the traced version of a handler, for calls of a path."""
        known = self._made.get(path)
        if known is not None and known[0] is handler:
            return known[1]
        if len(self._made) >= _MAX_METHODS:
            self._made.clear()
        traced = self._traced(handler, method_at(path, self._category))
        self._made[path] = handler, traced
        return traced

    def _traced(self, handler: Any, method: exchange.TracedMethod) -> Any:
        kind = "stream" if handler.request_streaming else "unary"
        kind += "_stream" if handler.response_streaming else "_unary"
        behavior = getattr(handler, kind)
        if getattr(behavior, "experimental_non_blocking", False):
            return handler  # The handler replies through a callback of gRPC.
        traced = self._wraps[handler.response_streaming](behavior, method)
        update_wrapper(traced, behavior)  # gRPC reads attributes of the function.
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(traced, handler.request_deserializer, handler.response_serializer)


def answered(method: exchange.TracedMethod, key: int) -> None:
    """Record the end of a handler as the reply: gRPC sends a reply or an error right after it."""
    # After an abort the status is already sent, and may arrive before an instant written now.
    if not isinstance(exception(), _AbortError):
        method.sent_reply.instant(flow=key or exchange.no_flow())


def single(behavior: Callable[..., Any], method: exchange.TracedMethod) -> Callable[..., Any]:
    """Return a traced version of a handler that returns a single reply."""

    def traced(request: Any, context: Any) -> Any:
        key = exchange.request_key(context.invocation_metadata())
        with method.received_request.slice(flow=key or exchange.no_flow(), within=(incoming, key)):
            try:
                reply = behavior(request, context)
            except BaseException:
                answered(method, key)
                raise
            method.sent_reply.instant(flow=key or exchange.no_flow())
            return reply

    return traced


def streaming(
    behavior: Callable[..., Iterator[Any]], method: exchange.TracedMethod
) -> Callable[..., Iterator[Any]]:
    """Return a traced version of a handler that returns an iterator."""

    def traced(request: Any, context: Any) -> Iterator[Any]:
        key = exchange.request_key(context.invocation_metadata())
        before = incoming.set(key)
        try:
            with method.received_request.slice(flow=key or exchange.no_flow()):
                replies = behavior(request, context)
            # No slice is open here: each step may run on another thread.
            yield from replies
        finally:
            answered(method, key)
            # If gRPC ends the iterator in another context, `reset` raises ValueError. The other
            # context doesn't have the value, so nothing has to be reset.
            with suppress(ValueError):
                incoming.reset(before)

    return traced
