"""Flows of gRPC (the package grpcio): an interceptor for each side.

    channel = grpc.intercept_channel(channel, FlowClientInterceptor())
    server = grpc.server(pool, interceptors=[FlowServerInterceptor()])

gRPC multiplexes, reconnects and retries below its interceptors, so messages can't be counted
here. Where calls carry a `traceparent` in their metadata (put there by an interceptor of
OpenTelemetry that is passed before ours), ids are made of that, and not a byte is added; else, with
`FlowClientInterceptor(add_header=True)`, of an entry of our own, `x-stretto-flow`.

A call is a slice while its stub blocks, and the handling one while its method runs. Of calls that
stream, the messages aren't shown: the reply stands for the end of the call.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import grpc

from stretto.base import rpc_hooks
from stretto.flows.exchange import FLOW_HEADER, TRACEPARENT, Exchange, key_of, new_flow, stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_FIELDS = ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")


class _Details(namedtuple("_Details", _FIELDS), grpc.ClientCallDetails):  # type: ignore[misc]  # noqa: PYI024
    """The details of a call, which interceptors pass on."""


def _key(metadata: Iterable[tuple[str, str | bytes]] | None) -> int:
    wanted = (TRACEPARENT, FLOW_HEADER)
    return key_of({name: str(value) for name, value in metadata or () if name in wanted})


def _exchange(path: str, key: int, category: str, *, is_server: bool) -> Exchange:
    service, _, method = path.strip("/").rpartition("/")
    return Exchange(category=category, service=service, method=method, key=key, is_server=is_server)


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
        key = _key(details.metadata)
        if not key and self._add_header:
            text, key = new_flow()
            metadata = [*(details.metadata or ()), (FLOW_HEADER, text)]
            known = {name: getattr(details, name, None) for name in _FIELDS}
            details = _Details(**{**known, "metadata": metadata})
        exchange = _exchange(details.method, key, self._category, is_server=False)
        with exchange:
            call = continuation(details, request)
            if call.done():
                exchange.reply()
                return call
        call.add_done_callback(lambda _call: exchange.reply())
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
        self._category = category

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """See `grpc.ServerInterceptor`."""
        handler = continuation(details)
        if handler is None or not self._switch.enabled:
            return handler
        key = _key(details.invocation_metadata)
        exchange = _exchange(details.method, key, self._category, is_server=True)
        if handler.request_streaming:
            name = "stream_stream" if handler.response_streaming else "stream_unary"
        else:
            name = "unary_stream" if handler.response_streaming else "unary_unary"
        wrap = _streaming if handler.response_streaming else _single
        make = getattr(grpc, f"{name}_rpc_method_handler")
        return make(
            wrap(getattr(handler, name), exchange),
            handler.request_deserializer,
            handler.response_serializer,
        )


def _single(behavior: Callable[..., Any], exchange: Exchange) -> Callable[..., Any]:
    def traced(request: Any, context: Any) -> Any:
        with exchange:
            try:
                return behavior(request, context)
            finally:
                # gRPC sends it behind us, an error too.
                exchange.reply(stamp())

    return traced


def _streaming(
    behavior: Callable[..., Iterator[Any]], exchange: Exchange
) -> Callable[..., Iterator[Any]]:
    def traced(request: Any, context: Any) -> Iterator[Any]:
        with exchange:
            replies = behavior(request, context)
        # Each step may run on another thread: no slice is open meanwhile.
        try:
            yield from replies
        finally:
            exchange.reply(stamp())

    return traced
