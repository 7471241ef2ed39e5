"""Calls over a real gRPC channel have flow arrows, from a traceparent or from Stretto's header."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stretto import flows
from tests.support.recorded_events import BEGIN, END, Event, record
from tests.support.traced_greeter import flows_installed

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALL = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]


class Service:
    """gRPC methods of all four kinds, some of which fail; stores the metadata of the calls."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, Any]] = []
        self.incoming: list[int] = []
        self.done = threading.Event()
        """Set by a client that waits no more."""

    def one(self, request: bytes, context: Any) -> bytes:
        self.metadata.append(dict(context.invocation_metadata()))
        self.incoming.append(flows.incoming())
        return request.upper()

    def fail(self, _request: bytes, context: Any) -> bytes:
        context.abort(grpc.StatusCode.NOT_FOUND, "none")
        raise AssertionError

    def crash(self, _request: bytes, _context: Any) -> bytes:
        raise ZeroDivisionError

    def wait(self, request: bytes, _context: Any) -> bytes:
        assert self.done.wait(60)
        return request

    def endless(self, request: bytes, _context: Any) -> Iterator[bytes]:
        while not self.done.wait(0.001):
            yield request

    def many(self, request: bytes, _context: Any) -> Iterator[bytes]:
        for letter in request:
            self.incoming.append(flows.incoming())
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
        "Crash": grpc.unary_unary_rpc_method_handler(service.crash),
        "Wait": grpc.unary_unary_rpc_method_handler(service.wait),
        "Endless": grpc.unary_stream_rpc_method_handler(service.endless),
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


def test_no_header_is_added_to_a_call_with_traceparent(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        call = channel.unary_unary("/test.Service/One")
        assert call(b"abc", metadata=[("traceparent", PARENT)]) == b"ABC"
    assert arrows(recorded.events, "One") == [CALL]
    assert "x-stretto-flow" not in service.metadata[0]


def test_header_of_stretto_connects_request_and_handler(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        call = channel.unary_unary("/test.Service/One")
        assert [call(b"x", metadata=[("a", "b")], timeout=30) for _ in range(3)] == [b"X"] * 3
    assert arrows(recorded.events, "One") == [CALL] * 3
    assert [entry["a"] for entry in service.metadata] == ["b"] * 3
    assert len({entry["x-stretto-flow"] for entry in service.metadata}) == 3


def test_call_without_traceparent_and_header_has_no_arrow(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address) as channel:
        assert channel.unary_unary("/test.Service/One")(b"x") == b"X"
    assert len(recorded.events) == 6
    assert flows.stats() == {"no header": 4}
    assert not any(event.flows or event.terminating_flows for event in recorded.events)
    assert "x-stretto-flow" not in service.metadata[0]


def test_failed_call_has_all_four_flow_points(address: str) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/test.Service/Fail")(b"x")
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert arrows(recorded.events, "Fail") == [CALL]


def test_call_whose_handler_raises_has_all_four_flow_points(address: str) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/test.Service/Crash")(b"x")
        assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert arrows(recorded.events, "Crash") == [CALL]


def test_call_of_an_unknown_method_has_only_the_flow_points_of_the_client(address: str) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/test.Service/None")(b"x")
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert arrows(recorded.events, "None") == [[CALL[0], CALL[3]]]


def test_expired_deadline_is_not_recorded_as_a_reply(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/test.Service/Wait")(b"x", timeout=0.2)
        service.done.set()
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        # The server has two threads. After one more call on each, the expired call has ended.
        for _ in range(2):
            assert channel.unary_unary("/test.Service/One")(b"x") == b"X"
    (points,) = arrows(recorded.events, "Wait")
    assert points[:2] in (CALL[:2], CALL[:1])
    assert CALL[3] not in points


def test_call_without_a_server_has_only_its_request() -> None:
    with flows_installed(), record() as recorded, intercepted("127.0.0.1:1", add_header=True) as to:
        call = to.unary_unary("/test.Service/One")
        with pytest.raises(grpc.RpcError) as caught:
            call(b"x")
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        with pytest.raises(grpc.RpcError):
            call.future(b"x").result(timeout=60)
    assert arrows(recorded.events, "One") == [CALL[:1]] * 2
    assert recorded.kinds == "BEBE"


def test_call_on_a_closed_channel_has_only_its_request(address: str) -> None:
    with record() as recorded:
        channel = intercepted(address, add_header=True)
        call = channel.unary_unary("/test.Service/One")
        channel.close()
        with pytest.raises(ValueError, match="closed"):
            call(b"x")
        with pytest.raises(ValueError, match="closed"):
            call.future(b"x").result()
    assert arrows(recorded.events, "One") == [CALL[:1]] * 2
    assert recorded.kinds == "BEBE"


def test_cancelled_stream_is_not_recorded_as_a_reply(address: str, service: Service) -> None:
    ended = threading.Event()
    with record() as recorded, intercepted(address, add_header=True) as channel:
        call = channel.unary_stream("/test.Service/Endless")(b"x")
        call.add_done_callback(lambda _call: ended.set())
        assert next(call) == b"x"
        call.cancel()
        with pytest.raises(grpc.RpcError):
            list(call)
        assert ended.wait(60)
        service.done.set()
    (points,) = arrows(recorded.events, "Endless")
    assert points[:2] == CALL[:2]
    assert CALL[3] not in points


def test_unary_call_through_grpc_with_call_has_all_four_flow_points(address: str) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        reply, call = channel.unary_unary("/test.Service/One").with_call(b"x")
        assert (reply, call.code()) == (b"X", grpc.StatusCode.OK)
        reply, call = channel.stream_unary("/test.Service/Join").with_call(iter([b"a", b"b"]))
        assert (reply, call.code()) == (b"ab", grpc.StatusCode.OK)
    assert arrows(recorded.events, "One") == arrows(recorded.events, "Join") == [CALL]


@pytest.mark.parametrize("single_threaded", [False, True])
def test_calls_through_futures_and_streams_have_arrows(
    address: str, *, single_threaded: bool
) -> None:
    from stretto.flows.grpcio import FlowClientInterceptor

    experimental = importlib.import_module("grpc.experimental")
    option = (experimental.ChannelOptions.SingleThreadedUnaryStream, 1)
    plain = grpc.insecure_channel(address, options=[option] if single_threaded else [])
    with record() as recorded, plain:
        channel = grpc.intercept_channel(plain, FlowClientInterceptor(add_header=True))
        future = channel.unary_unary("/test.Service/One").future(b"later")
        assert future.result(timeout=60) == b"LATER"
        assert list(channel.unary_stream("/test.Service/Many")(b"abc")) == [b"a", b"b", b"c"]
        assert channel.stream_unary("/test.Service/Join")(iter([b"a", b"b"])) == b"ab"
        both = channel.stream_stream("/test.Service/Each")(iter([b"a", b"b"]))
        assert list(both) == [b"A", b"B"]
    for method in ("One", "Many", "Join", "Each"):
        ((*points, last),) = arrows(recorded.events, method)
        # gRPC may call the callback for the end of a call after the `with` block.
        assert [*points, last] in (CALL, CALL[:3]), method


def test_call_metadata_may_be_an_iterator(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address) as channel:
        pairs = iter([("traceparent", PARENT), ("a", "b")])
        assert channel.unary_unary("/test.Service/One")(b"x", metadata=pairs) == b"X"
    assert arrows(recorded.events, "One") == [CALL]
    assert service.metadata[0]["a"] == "b"


@pytest.mark.parametrize("metadata", [[("a", 1)], [()], [1], 5])
def test_invalid_metadata_raises_the_same_error_as_without_interceptor(
    address: str, metadata: Any
) -> None:
    errors = []
    with record(), grpc.insecure_channel(address) as plain, intercepted(address) as ours:
        for channel in (plain, ours):
            with pytest.raises(Exception) as caught:  # noqa: PT011  # gRPC's business
                channel.unary_unary("/test.Service/One")(b"x", metadata=metadata)
            errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


class OnlyMethod(grpc.ClientCallDetails):  # type: ignore[misc]
    """Call details with the fewest attributes that gRPC allows."""

    def __init__(self, details: Any) -> None:
        self.method = details.method
        self.metadata = details.metadata


class Neighbour(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
):
    """An interceptor that isn't Stretto's."""

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(OnlyMethod(details), request)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        yield from continuation(details, request)


def test_calls_have_arrows_if_other_interceptors_surround_the_flow_interceptor(
    address: str,
) -> None:
    from stretto.flows.grpcio import FlowClientInterceptor

    ours = FlowClientInterceptor(add_header=True)
    with record() as recorded, grpc.insecure_channel(address) as plain:
        channel = grpc.intercept_channel(plain, Neighbour(), ours, Neighbour())
        assert channel.unary_unary("/test.Service/One")(b"x") == b"X"
        assert list(channel.unary_stream("/test.Service/Many")(b"ab")) == [b"a", b"b"]
    assert arrows(recorded.events, "One") == [CALL]
    # The interceptor can't observe the end of a plain iterator of replies.
    ((first, *_),) = arrows(recorded.events, "Many")
    assert first == CALL[0]


def test_handler_can_get_the_flow_of_its_call(address: str, service: Service) -> None:
    with record() as recorded, intercepted(address, add_header=True) as channel:
        assert channel.unary_unary("/test.Service/One")(b"x") == b"X"
        assert len(list(channel.unary_stream("/test.Service/Many")(b"abc"))) == 3
    called = {e.name: e.flows for e in recorded.events if e.kind == BEGIN}
    assert service.incoming == called["One"] + called["Many"] * 3


def test_interceptor_does_nothing_when_flows_are_not_installed(
    address: str, service: Service
) -> None:
    flows.uninstall()
    with record() as recorded, intercepted(address, add_header=True) as channel:
        assert channel.unary_unary("/test.Service/One")(b"x") == b"X"
    assert recorded.events == []
    assert "x-stretto-flow" not in service.metadata[0]


class TestFlowServerInterceptor:
    """Tests that call the server interceptor without a channel."""

    class Called:
        """A stand-in for grpc.HandlerCallDetails."""

        method = "/test.Service/One"
        invocation_metadata = ()

    @staticmethod
    def one(request: bytes, _context: Any) -> bytes:
        return request

    def handler_for(self, handler: Any, interceptor: Any) -> Any:
        return interceptor.intercept_service(lambda _details: handler, self.Called())

    def test_interceptor_wraps_the_same_handler_only_once(self) -> None:
        from stretto.flows.grpcio import FlowServerInterceptor

        with flows_installed(), record():
            interceptor = FlowServerInterceptor()
            handler, other = (grpc.unary_unary_rpc_method_handler(self.one, str, repr),) * 2
            other = grpc.unary_unary_rpc_method_handler(self.one, int, repr)
            wrapped = self.handler_for(handler, interceptor)
            assert wrapped is not handler
            assert wrapped is self.handler_for(handler, interceptor)
            assert wrapped.request_deserializer is str
            assert self.handler_for(other, interceptor).request_deserializer is int
            assert self.handler_for(None, interceptor) is None
        assert self.handler_for(handler, interceptor) is handler

    def test_wrapped_handler_has_the_attributes_that_grpc_reads(self) -> None:
        from stretto.flows.grpcio import FlowServerInterceptor

        def pooled(request: bytes, _context: Any) -> bytes:
            return request

        def non_blocking(*_: Any) -> None:
            raise AssertionError

        pooled.experimental_thread_pool = "a pool"  # type: ignore[attr-defined]
        non_blocking.experimental_non_blocking = True  # type: ignore[attr-defined]
        with flows_installed(), record():
            interceptor = FlowServerInterceptor()
            handler = grpc.unary_unary_rpc_method_handler(pooled)
            wrapped = self.handler_for(handler, interceptor)
            assert wrapped.unary_unary is not pooled
            assert wrapped.unary_unary.experimental_thread_pool == "a pool"
            handler = grpc.unary_stream_rpc_method_handler(non_blocking)
            assert self.handler_for(handler, interceptor) is handler
