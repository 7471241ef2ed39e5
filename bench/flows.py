"""What flow tracing of RPC costs.

    python bench/flows.py [--json] [--rounds N]

inlined_check/limit     `if switch.enabled` in a stub on a null transport, while off, by 5 ns
ipc_untraced/no_hooks   a call over our IPC whose category isn't recorded, by the same without
                        hooks
ipc_traced/otel         what tracing adds to a call over our IPC, by what OpenTelemetry (a
                        recording span at each end, context injected and extracted) adds to a
                        grpcio call in the same round
grpcio_wrapper/limit    what our interceptors add to a grpcio call over ones that do nothing,
                        by 20 us

Rounds go through all states in turn; figures are medians over the rounds, but the check's, which is
the best. Our IPC's calls go through both machines in one thread, so that what is added isn't lost
in the noise of wakeups; a call is a request and its reply, four points of a flow. `target` is the
most that `ratio` may be.
"""

from __future__ import annotations

import argparse
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import TYPE_CHECKING, Any

import grpc
from opentelemetry import propagate
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import stretto
from stretto import flows
from stretto.base.rpc_hooks import TraceSwitch
from stretto.flows.grpcio import FlowClientInterceptor, FlowServerInterceptor
from stretto.ipc.client import Client
from stretto.ipc.host import HostConnection, HostedService
from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS = 300_000
IPC_CALLS = 1_000
GRPC_CALLS = 200
CHECK_LIMIT_NS = 5.0
WRAPPER_LIMIT_US = 20.0
OTEL_TARGET = 0.05

SERVICE = ServiceDescriptor("Bench", [Method("Echo", Raw, Raw)], {"Echo": "bench.flows"})
switch = TraceSwitch("bench.never")


def plain_stub(send: Callable[[bytes], None], data: bytes) -> None:
    send(data)


def checked_stub(send: Callable[[bytes], None], data: bytes) -> None:
    if switch.enabled:
        raise AssertionError
    send(data)


def nothing(_data: bytes) -> None:
    """A null transport."""


def ns_per_call(stub: Callable[..., None]) -> float:
    begin = time.perf_counter_ns()
    for _ in range(CHECKS):
        stub(nothing, b"")
    return (time.perf_counter_ns() - begin) / CHECKS


class Ipc:
    """A client and a host in one thread, over nothing but a list of frames."""

    def __init__(self) -> None:
        self.runner = FakeTaskRunner()
        self.ends = socket.socketpair()
        pair = ConnectionPair(self.runner)
        client = Client(pair.client_outbox, self.ends[0])
        handlers = {"Echo": lambda request, deferred: deferred.resolve(request)}
        host = HostConnection(
            [HostedService(SERVICE, handlers)], pair.host_outbox, nothing, end=self.ends[1]
        )
        pair.connect(client, host)
        self.outboxes = (pair.client_outbox, pair.host_outbox)
        bound: list[Any] = []
        client.bind(SERVICE, bound.append)
        self.runner.run_until_idle()
        self.proxy = bound[0]

    def us_per_call(self) -> float:
        begin = time.perf_counter_ns()
        for _ in range(IPC_CALLS):
            self.proxy.invoke("Echo", Raw(b"x" * 32), lambda _reply, _more: None)
            self.runner.run_until_idle()
        us = (time.perf_counter_ns() - begin) / IPC_CALLS / 1000
        for outbox in self.outboxes:
            outbox.sent.clear()
        return us

    def close(self) -> None:
        for end in self.ends:
            end.close()


class Nowhere(SpanExporter):
    """Takes spans, and forgets them."""

    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def otel_tracer() -> Any:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    return provider


class OtelClient(grpc.UnaryUnaryClientInterceptor):
    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        attributes = {"rpc.system": "grpc", "rpc.method": details.method}
        with self._tracer.start_as_current_span(details.method, attributes=attributes):
            headers: dict[str, str] = {}
            propagate.inject(headers)
            details = details._replace(metadata=list(headers.items()))
            return continuation(details, request)


class PlainClient(grpc.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(details, request)


class PlainServer(grpc.ServerInterceptor):
    def intercept_service(self, continuation: Any, details: Any) -> Any:
        return wrapped(continuation(details), lambda behavior: behavior)


class OtelServer(grpc.ServerInterceptor):
    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        context = propagate.extract(dict(details.invocation_metadata))
        attributes = {"rpc.system": "grpc", "rpc.method": details.method}

        def wrap(behavior: Any) -> Any:
            def traced(request: Any, call: Any) -> Any:
                with self._tracer.start_as_current_span(
                    details.method, context=context, attributes=attributes
                ):
                    return behavior(request, call)

            return traced

        return wrapped(continuation(details), wrap)


def wrapped(handler: Any, wrap: Callable[[Any], Any]) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        wrap(handler.unary_unary), handler.request_deserializer, handler.response_serializer
    )


class Grpc:
    """A server and a client of it in this process, over loopback."""

    def __init__(self, client: list[Any], server: list[Any]) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._server = grpc.server(self._pool, interceptors=server)
        handler = grpc.unary_unary_rpc_method_handler(lambda request, _context: request)
        generic = grpc.method_handlers_generic_handler("bench.Service", {"Echo": handler})
        self._server.add_generic_rpc_handlers((generic,))
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self._plain = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._channel = grpc.intercept_channel(self._plain, *client) if client else self._plain
        self._call = self._channel.unary_unary("/bench.Service/Echo")
        self.us_per_call()

    def us_per_call(self) -> float:
        begin = time.perf_counter_ns()
        for _ in range(GRPC_CALLS):
            self._call(b"x" * 32)
        return (time.perf_counter_ns() - begin) / GRPC_CALLS / 1000

    def close(self) -> None:
        self._plain.close()
        self._server.stop(None).wait()
        self._pool.shutdown()


def recorded(measure: Callable[[], float]) -> float:
    from stretto.client.recording import recording_config

    with stretto.TracingSession(recording_config(buffer_bytes=64 << 20)):
        return measure()


def measure_round(calls: dict[str, Grpc]) -> dict[str, float]:
    figures = {"plain": ns_per_call(plain_stub), "checked": ns_per_call(checked_stub)}
    ipc = Ipc()
    figures["ipc bare"] = ipc.us_per_call()
    ipc.close()
    flows.install()
    ipc = Ipc()
    figures["ipc off"] = ipc.us_per_call()
    figures["ipc on"] = recorded(ipc.us_per_call)
    ipc.close()
    figures["grpc flows"] = recorded(calls["flows"].us_per_call)
    flows.uninstall()
    for name in ("bare", "no-op", "otel"):
        figures[f"grpc {name}"] = calls[name].us_per_call()
    return figures


def row(name: str, ours: float, peer: float, unit: str, target: float) -> dict[str, object]:
    return {
        "name": name,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "unit": unit,
        "ratio": round(ours / peer, 3),
        "target": target,
    }


def make_rows(rounds: int) -> list[dict[str, object]]:
    provider = otel_tracer()
    tracer = provider.get_tracer("bench")
    flows.install()
    calls = {
        "bare": Grpc([], []),
        "no-op": Grpc([PlainClient()], [PlainServer()]),
        "otel": Grpc([OtelClient(tracer)], [OtelServer(tracer)]),
        "flows": Grpc([FlowClientInterceptor(add_header=True)], [FlowServerInterceptor()]),
    }
    flows.uninstall()
    taken = [measure_round(calls) for _ in range(rounds)]
    for each in calls.values():
        each.close()
    provider.shutdown()
    check = min(each["checked"] for each in taken) - min(each["plain"] for each in taken)

    def added(name: str, base: str) -> float:
        return median(each[name] - each[base] for each in taken)

    return [
        row("inlined_check/limit", check, CHECK_LIMIT_NS, "ns", 1.0),
        row(
            "ipc_untraced/no_hooks",
            median(each["ipc off"] for each in taken),
            median(each["ipc bare"] for each in taken),
            "us",
            1.1,
        ),
        row(
            "ipc_traced/otel",
            added("ipc on", "ipc bare"),
            added("grpc otel", "grpc bare"),
            "us",
            OTEL_TARGET,
        ),
        row(
            "grpcio_wrapper/limit",
            added("grpc flows", "grpc no-op"),
            WRAPPER_LIMIT_US,
            "us",
            1.0,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object per row")
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    for each in make_rows(given.rounds):
        if given.json:
            print(json.dumps(each))
        else:
            print(
                "{name:30} {ours:10} {peer:10} {unit:3} {ratio:8} (at most {target})".format(**each)
            )


if __name__ == "__main__":
    main()
