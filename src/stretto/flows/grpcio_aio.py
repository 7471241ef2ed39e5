"""Flows of gRPC for asyncio (`grpc.aio`): interceptors for each side.

    channel = grpc.aio.insecure_channel(address, interceptors=client_interceptors())
    server = grpc.aio.server(interceptors=[FlowServerInterceptor()])

`stretto.flows.grpcio` describes the rules. There are two differences:

- The interceptor can't observe when a reply is awaited. So a call's slice ends once the call is
  sent, and the instant of the reply marks the end of the call.
- Each call's handler has a track of its own. On this track a streaming handler's slice lasts until
  the handler's last message.

`context.abort` sends the reply before the interceptor can record the instant of the reply. The
arrow of such a reply begins at the handler's slice instead.
"""

from __future__ import annotations

from contextlib import aclosing
from inspect import isasyncgenfunction, iscoroutinefunction

from grpc import aio

from stretto.base import rpc_hooks
from stretto.flows import grpcio
from stretto.flows.exchange import FLOW_HEADER, cause, new_flow, no_flow, request_key
from stretto.flows.grpcio import MAYBE_LOCAL, TracedHandlers, answered, method_at
from stretto.flows.tracer import incoming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from typing import Any

    from stretto.flows.exchange import TracedMethod


def client_interceptors(*, add_header: bool = False, category: str = "grpc") -> list[Any]:
    """Return the interceptors for a channel: one for each kind of call.

    Args:
        add_header: Whether to add `x-stretto-flow` to calls without a `traceparent`.
        category: The category of the calls.
    """
    kinds = (_UnaryUnary, _UnaryStream, _StreamUnary, _StreamStream)
    return [kind(add_header=add_header, category=category) for kind in kinds]


class _Client:
    """Traces the calls of one kind."""

    def __init__(self, *, add_header: bool, category: str) -> None:
        self._switch = rpc_hooks.switch(category)
        self._add_header = add_header
        self._category = category

    async def _intercept(self, continuation: Any, details: Any, request: Any) -> Any:
        if not self._switch.enabled:
            return await continuation(details, request)
        key = request_key(tuple(details.metadata or ()))
        if not key and self._add_header:
            text, key = new_flow()
            metadata = aio.Metadata(*(details.metadata or ()), (FLOW_HEADER, text))
            details = details._replace(metadata=metadata)
        path = details.method
        method = method_at(path.decode() if isinstance(path, bytes) else path, self._category)
        flow = key or no_flow()
        with method.sent_request.slice(cause(), flow=flow):
            call = await continuation(details, request)
        if call.done():
            _ended(call, method, key)
        else:
            call.add_done_callback(lambda call: _ended(call, method, key))
        return call


def _ended(call: Any, method: TracedMethod, key: int) -> None:
    coroutine = call.code()
    try:
        coroutine.send(None)
    except StopIteration as result:
        if result.value not in MAYBE_LOCAL:
            method.received_reply.instant(terminating_flow=key or no_flow())
    else:
        coroutine.close()  # The call is done, but code() would wait: the status is unknown.


class _UnaryUnary(_Client, aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return await self._intercept(continuation, details, request)


class _UnaryStream(_Client, aio.UnaryStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return await self._intercept(continuation, details, request)


class _StreamUnary(_Client, aio.StreamUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_stream_unary(self, continuation: Any, details: Any, requests: Any) -> Any:
        return await self._intercept(continuation, details, requests)


class _StreamStream(_Client, aio.StreamStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return await self._intercept(continuation, details, requests)


class FlowServerInterceptor(aio.ServerInterceptor):  # type: ignore[misc]
    """Traces the calls that a server handles, by coroutines or by synchronous handlers.

    Args:
        category: The category of the calls.
    """

    def __init__(self, *, category: str = "grpc") -> None:
        self._switch = rpc_hooks.switch(category)
        self._handlers = TracedHandlers(category, _single, _streaming)

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Implement `grpc.aio.ServerInterceptor.intercept_service`."""
        handler = await continuation(details)
        if handler is None or not self._switch.enabled:
            return handler
        return self._handlers.like(handler, details.method)


# gRPC inspects the kind of a handler's function, so the traced version is of the same kind.


def _single(behavior: Callable[..., Any], method: TracedMethod) -> Callable[..., Any]:
    wrap = _awaiting if iscoroutinefunction(behavior) else grpcio.single
    return wrap(behavior, method)


def _streaming(behavior: Callable[..., Any], method: TracedMethod) -> Callable[..., Any]:
    if isasyncgenfunction(behavior):
        return _generating(behavior, method)
    wrap = _awaiting if iscoroutinefunction(behavior) else grpcio.streaming
    return wrap(behavior, method)


def _awaiting(
    behavior: Callable[..., Coroutine[Any, Any, Any]], method: TracedMethod
) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def traced(request: Any, context: Any) -> Any:
        key = request_key(context.invocation_metadata())
        with method.received_request.slice(flow=key or no_flow(), within=(incoming, key)):
            try:
                return await behavior(request, context)
            finally:
                answered(method, key)

    return traced


def _generating(
    behavior: Callable[..., AsyncGenerator[Any, None]], method: TracedMethod
) -> Callable[..., AsyncGenerator[Any, None]]:
    async def traced(request: Any, context: Any) -> AsyncGenerator[Any, None]:
        key = request_key(context.invocation_metadata())
        with method.received_request.slice(flow=key or no_flow(), within=(incoming, key)):
            try:
                async with aclosing(behavior(request, context)) as replies:
                    async for reply in replies:
                        yield reply
            finally:
                answered(method, key)

    return traced
