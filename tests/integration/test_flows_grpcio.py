"""Calls over a real gRPC channel have their arrows, from a traceparent or a header of our own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.recorded_events import END, Event, record
from tests.support.traced_greeter import flows_installed

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALL = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]


class Service:
    """Four kinds of methods, and one that fails; what came as metadata is kept."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, Any]] = []

    def one(self, request: bytes, context: Any) -> bytes:
        self.metadata.append(dict(context.invocation_metadata()))
        return request.upper()

    def fail(self, _request: bytes, context: Any) -> bytes:
        context.abort(grpc.StatusCode.NOT_FOUND, "none")
        raise AssertionError

    def many(self, request: bytes, _context: Any) -> Iterator[bytes]:
        for letter in request:
            yield bytes([letter])

    def join(self, requests: Iterator[bytes], _context: Any) -> bytes:
        return b"".join(requests)

    def each(self, requests: Iterator[bytes], _context: Any) -> Iterator[bytes]:
        for request in requests:
            yield request.upper()


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def address(service: Service) -> Iterator[str]:
    from stretto.flows.grpcio import FlowServerInterceptor

    handlers = {
        "One": grpc.unary_unary_rpc_method_handler(service.one),
        "Fail": grpc.unary_unary_rpc_method_handler(service.fail),
        "Many": grpc.unary_stream_rpc_method_handler(service.many),
        "Join": grpc.stream_unary_rpc_method_handler(service.join),
        "Each": grpc.stream_stream_rpc_method_handler(service.each),
    }
    with flows_installed(), ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, interceptors=[FlowServerInterceptor()])
        generic = grpc.method_handlers_generic_handler("test.Service", handlers)
        server.add_generic_rpc_handlers((generic,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}"
        server.stop(None).wait()


def intercepted(address: str, *, add_header: bool = False) -> Any:
    from stretto.flows.grpcio import FlowClientInterceptor

    return grpc.intercept_channel(
        grpc.insecure_channel(address), FlowClientInterceptor(add_header=add_header)
    )


def arrows(events: list[Event], method: str) -> list[list[tuple[str, str]]]:
    chains: dict[int, list[tuple[str, str]]] = {}
    for event in sorted(events, key=lambda event: event.timestamp):
        if event.kind != END and event.args["method"] == method:
            assert event.args["service"] == "test.Service"
            (flow,) = event.flows + event.terminating_flows
            chains.setdefault(flow, []).append((event.args["role"], event.args["kind"]))
    return list(chains.values())


def test_a_traceparent_needs_no_header(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        call = channel.unary_unary("/test.Service/One")
        assert call(b"abc", metadata=[("traceparent", PARENT)]) == b"ABC"
    assert arrows(recorded.events, "One") == [CALL]
    assert "x-stretto-flow" not in service.metadata[0]


def test_our_own_header(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        call = channel.unary_unary("/test.Service/One")
        assert [call(b"x", metadata=[("a", "b")], timeout=30) for _ in range(3)] == [b"X"] * 3
    assert arrows(recorded.events, "One") == [CALL] * 3
    assert [entry["a"] for entry in service.metadata] == ["b"] * 3
    assert len({entry["x-stretto-flow"] for entry in service.metadata}) == 3


def test_without_either_there_is_no_arrow_and_no_entry(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address) as channel:
        assert channel.unary_unary("/test.Service/One")(b"x") == b"X"
    assert len(recorded.events) == 6
    assert not any(event.flows or event.terminating_flows for event in recorded.events)
    assert "x-stretto-flow" not in service.metadata[0]


def test_a_call_that_fails(address: str) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/test.Service/Fail")(b"x")
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert arrows(recorded.events, "Fail") == [CALL]


def test_futures_and_streams(address: str) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        future = channel.unary_unary("/test.Service/One").future(b"later")
        assert future.result(timeout=60) == b"LATER"
        assert list(channel.unary_stream("/test.Service/Many")(b"abc")) == [b"a", b"b", b"c"]
        assert channel.stream_unary("/test.Service/Join")(iter([b"a", b"b"])) == b"ab"
        both = channel.stream_stream("/test.Service/Each")(iter([b"a", b"b"]))
        assert list(both) == [b"A", b"B"]
    for method in ("One", "Many", "Join", "Each"):
        ((*points, last),) = arrows(recorded.events, method)
        # Who waits for the end of a call in the background may be told after the block.
        assert [*points, last] in (CALL, CALL[:3]), method


def test_without_hooks_nothing_changes(address: str, service: Service) -> None:
    from stretto import flows

    flows.uninstall()
    with record() as recorded, intercepted(address, add_header=True) as channel:
        assert channel.unary_unary("/test.Service/One")(b"x") == b"X"
    assert recorded.events == []
    assert "x-stretto-flow" not in service.metadata[0]
