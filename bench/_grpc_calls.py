"""Calls of one gRPC server over one connection, for bench/flows.py.

Each state has its own method, and its own chain of interceptors on the same channel:

    bare      no interceptors
    no-op     interceptors of client and server that do nothing, with the same methods as ours
    off       our interceptors, while their category is not recorded
    flows     our interceptors; the calls have a `traceparent`
    parent    the interceptors of no-op; the calls have a `traceparent`
    header    our interceptors; the calls have no `traceparent`, so the interceptors add a header
    entry     the interceptors of no-op; each call has such a header; its value is new each time,
              which costs gRPC 10 us
    otel      opentelemetry-instrumentation-grpc, with channel and server wrapped as by its
              instrumentors; spans go through a batch processor to an exporter that drops them
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, repeat
from typing import Any

import grpc
from _rounds import State, timed
from opentelemetry.instrumentation.grpc import client_interceptor, server_interceptor
from opentelemetry.instrumentation.grpc.grpcext import intercept_channel as otel_channel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from stretto import flows
from stretto.flows.exchange import FLOW_HEADER, new_flow
from stretto.flows.grpcio import FlowClientInterceptor, FlowServerInterceptor

BODY = b"x" * 32
PARENTS = repeat((("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),))
ENTRIES = cycle([((FLOW_HEADER, new_flow()[0]),) for _ in range(4096)])
NOTHING = repeat(None)
OFF = "bench.grpc_off"


class Nowhere(SpanExporter):
    """A span exporter that drops all spans."""

    def export(self, _spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class NoClient(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """A client interceptor that does nothing."""

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(details, request)

    intercept_unary_stream = intercept_unary_unary
    intercept_stream_unary = intercept_unary_unary
    intercept_stream_stream = intercept_unary_unary


class NoServer(grpc.ServerInterceptor):
    """A server interceptor that does nothing."""

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        return continuation(details)


class ByMethod(grpc.ServerInterceptor):
    """A server interceptor that passes each call to the interceptor that `states` has for it."""

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        return self.states[details.method](continuation, details)


class GrpcCalls:
    """A server and a client in this process, connected over loopback."""

    def __init__(self) -> None:
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(Nowhere()))
        self._pool = ThreadPoolExecutor(1)
        self._handlers: dict[str, Any] = {}
        self._by_method = ByMethod()
        self._server = grpc.server(self._pool, interceptors=[self._by_method])
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        with_no_op = grpc.intercept_channel(self._channel, NoClient())
        ours = FlowServerInterceptor()
        self.states = {
            "bare": self._state("Bare", self._channel, None),
            "no-op": self._state("NoOp", with_no_op, NoServer()),
            "parent": self._state("Parent", with_no_op, NoServer(), PARENTS),
            "entry": self._state("Entry", with_no_op, NoServer(), ENTRIES),
            "off": self._state(
                "Off",
                self._ours(FlowClientInterceptor(category=OFF)),
                FlowServerInterceptor(category=OFF),
            ),
            "flows": self._state("Flows", self._ours(FlowClientInterceptor()), ours, PARENTS),
            "header": self._state(
                "Header", self._ours(FlowClientInterceptor(add_header=True)), ours
            ),
            "otel": self._state(
                "Otel",
                otel_channel(self._channel, client_interceptor(self._provider)),
                server_interceptor(self._provider),
            ),
        }
        generic = grpc.method_handlers_generic_handler("bench", self._handlers)
        self._server.add_generic_rpc_handlers((generic,))
        flows.disable(OFF)
        self._server.start()

    def _ours(self, interceptor: FlowClientInterceptor) -> Any:
        return grpc.intercept_channel(self._channel, interceptor)

    def _state(self, name: str, channel: Any, interceptor: Any, metadata: Any = NOTHING) -> State:
        path = f"/bench/{name}"
        echo = grpc.unary_unary_rpc_method_handler(lambda request, _context: request)
        self._handlers[name] = echo
        self._by_method.states[path] = (
            (lambda continuation, details: continuation(details))
            if interceptor is None
            else interceptor.intercept_service
        )
        call = channel.unary_unary(path)
        return State(timed(lambda: call(BODY, metadata=next(metadata))), flows.install)

    def close(self) -> None:
        self._channel.close()
        self._server.stop(10).wait()
        self._pool.shutdown()
        self._provider.shutdown()
