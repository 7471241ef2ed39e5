"""Flows of gRPC (the package grpcio): an interceptor for each side.

    channel = grpc.intercept_channel(channel, FlowClientInterceptor())
    server = grpc.server(pool, interceptors=[FlowServerInterceptor()])

gRPC multiplexes, reconnects and retries below its interceptors, so messages can't be counted
here. Where calls carry a `traceparent` in their metadata (put there by an interceptor of
OpenTelemetry that is passed before ours), ids are made of that, and not a byte is added; else, with
`FlowClientInterceptor(add_header=True)`, of an entry of our own, `x-stretto-flow`.

A call is a slice while its stub blocks, and the handling one while its method runs. Of calls that
stream, the messages aren't shown: the reply stands for the end of the call. A status that gRPC
may have made up at the client's end (a deadline, an unreachable server) is no reply: whether the
server said so isn't known.

What is done per call is kept to a few lines without objects of our own: between two switches of
threads each line is a cold one, three to four times as dear as a loop shows.
"""

from __future__ import annotations

from collections import namedtuple
from contextlib import suppress
from functools import lru_cache, update_wrapper
from sys import exception
from typing import TYPE_CHECKING, Any

import grpc

from stretto.base import rpc_hooks
from stretto.flows.exchange import (
    FLOW_HEADER,
    TracedMethod,
    cause,
    new_flow,
    no_flow,
    request_key,
    traced_method,
)
from stretto.flows.tracer import incoming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Wrap = Callable[[Callable[..., Any], TracedMethod], Callable[..., Any]]

_FIELDS = ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")

_MAX_METHODS = 1024

_new_tuple: Any = tuple.__new__
"""Half of what the class takes."""
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
"""What the client's own end says, too."""


class Details(namedtuple("Details", _FIELDS), grpc.ClientCallDetails):  # type: ignore[misc]  # noqa: PYI024
    """The details of a call, which interceptors pass on."""


@lru_cache(_MAX_METHODS)
def method_at(path: str, category: str) -> TracedMethod:
    """The method that a path like `/package.Service/Method` names."""
    service, _, method = path.strip("/").rpartition("/")
    return traced_method(category, service, method)


def with_metadata(details: Any, metadata: Any) -> Any:
    """A copy of the details of a call, with other metadata."""
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


def _replied(call: Any, method: TracedMethod, key: int) -> None:
    """A call of a client has ended: by a reply, if one is known to have come."""
    # Calls that went well need a lock to tell so, and those of streams are errors, too.
    if not isinstance(call, _RpcError) or call.code() not in MAYBE_LOCAL:
        method.received_reply.instant(terminating_flow=key or no_flow())


# grpcio has no types.
class FlowClientInterceptor(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
    grpc.StreamStreamClientInterceptor,  # type: ignore[misc]
):
    """Calls of a channel.

    Args:
        add_header: Name calls that carry no `traceparent` by an entry of our own.
        category: Under which they are traced.
    """

    def __init__(self, *, add_header: bool = False, category: str = "grpc") -> None:
        self._switch = rpc_hooks.switch(category)
        self._add_header = add_header
        self._category = category

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """See `grpc.UnaryUnaryClientInterceptor`."""
        if not self._switch.enabled:
            return continuation(details, request)
        metadata = details.metadata
        if metadata is not None and type(metadata) is not tuple and type(metadata) is not list:
            # Perhaps it can be read only once.
            metadata = tuple(metadata)
            details = with_metadata(details, metadata)
        key = request_key(metadata) if metadata else 0
        if not key and self._add_header:
            text, key = new_flow()
            details = with_metadata(details, (*(metadata or ()), (FLOW_HEADER, text)))
        method = method_at(details.method, self._category)
        with method.sent_request.slice(cause(), flow=key or no_flow()):
            call = continuation(details, request)
            try:
                done = call.done()
            except AttributeError:
                # The iterator of an interceptor behind us: it doesn't tell of its end.
                return call
            if done:
                _replied(call, method, key)
                return call
        call.add_done_callback(lambda call: _replied(call, method, key))
        return call

    intercept_unary_stream = intercept_unary_unary
    intercept_stream_unary = intercept_unary_unary
    intercept_stream_stream = intercept_unary_unary


class FlowServerInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """Calls that a server handles.

    Args:
        category: Under which they are traced.
    """

    def __init__(self, *, category: str = "grpc") -> None:
        self._switch = rpc_hooks.switch(category)
        self._handlers = TracedHandlers(category, single, streaming)

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """See `grpc.ServerInterceptor`."""
        handler = continuation(details)
        if handler is None or not self._switch.enabled:
            return handler
        return self._handlers.like(handler, details.method)


class TracedHandlers:
    """Handlers of a server, wrapped: each once, unless it changes.

    Args:
        category: Under which they are traced.
        single: Wraps a function that returns the reply.
        streaming: Wraps one that returns an iterator.
    """

    def __init__(self, category: str, single: Wrap, streaming: Wrap) -> None:
        self._category = category
        self._wraps = single, streaming
        self._made: dict[str, tuple[Any, Any]] = {}

    def like(self, handler: Any, path: str) -> Any:
        """The traced one of a handler, for calls of a path."""
        known = self._made.get(path)
        if known is not None and known[0] is handler:
            return known[1]
        if len(self._made) >= _MAX_METHODS:
            self._made.clear()
        traced = self._traced(handler, method_at(path, self._category))
        self._made[path] = handler, traced
        return traced

    def _traced(self, handler: Any, method: TracedMethod) -> Any:
        kind = "stream" if handler.request_streaming else "unary"
        kind += "_stream" if handler.response_streaming else "_unary"
        behavior = getattr(handler, kind)
        if getattr(behavior, "experimental_non_blocking", False):
            return handler  # replies through a function of gRPC's
        traced = self._wraps[handler.response_streaming](behavior, method)
        update_wrapper(traced, behavior)  # gRPC looks for attributes
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(traced, handler.request_deserializer, handler.response_serializer)


def answered(method: TracedMethod, key: int) -> None:
    """A handler has ended, and gRPC sends the reply behind us; an error, too."""
    # With this one the status is on its way: the reply's instant could be later than its arrival.
    if not isinstance(exception(), _AbortError):
        method.sent_reply.instant(flow=key or no_flow())


def single(behavior: Callable[..., Any], method: TracedMethod) -> Callable[..., Any]:
    """A traced handler that returns the reply."""

    def traced(request: Any, context: Any) -> Any:
        key = request_key(context.invocation_metadata())
        with method.received_request.slice(flow=key or no_flow(), within=(incoming, key)):
            try:
                reply = behavior(request, context)
            except BaseException:
                answered(method, key)
                raise
            method.sent_reply.instant(flow=key or no_flow())
            return reply

    return traced


def streaming(
    behavior: Callable[..., Iterator[Any]], method: TracedMethod
) -> Callable[..., Iterator[Any]]:
    """A traced handler that returns an iterator."""

    def traced(request: Any, context: Any) -> Iterator[Any]:
        key = request_key(context.invocation_metadata())
        before = incoming.set(key)
        try:
            with method.received_request.slice(flow=key or no_flow()):
                replies = behavior(request, context)
            # Each step may run on another thread: no slice is open meanwhile.
            yield from replies
        finally:
            answered(method, key)
            with suppress(ValueError):  # in another context: nobody sees this one
                incoming.reset(before)

    return traced
