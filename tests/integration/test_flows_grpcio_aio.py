"""Calls over a real gRPC channel of asyncio have flow arrows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stretto import flows
from tests.support.recorded_events import BEGIN, END, Event, record
from tests.support.traced_greeter import flows_installed

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALL = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]


class Service:
    """A service with a handler for each kind of gRPC method."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, Any]] = []
        self.incoming: list[int] = []
        self.cancelled = asyncio.Event()

    def handlers(self) -> dict[str, Any]:
        return {
            "One": grpc.unary_unary_rpc_method_handler(self.one),
            "Sync": grpc.unary_unary_rpc_method_handler(self.sync),
            "Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "SyncFail": grpc.unary_unary_rpc_method_handler(self.sync_fail),
            "Crash": grpc.unary_unary_rpc_method_handler(self.crash),
            "Wait": grpc.unary_unary_rpc_method_handler(self.wait),
            "Many": grpc.unary_stream_rpc_method_handler(self.many),
            "Written": grpc.unary_stream_rpc_method_handler(self.written),
            "SyncMany": grpc.unary_stream_rpc_method_handler(self.sync_many),
            "Endless": grpc.unary_stream_rpc_method_handler(self.endless),
            "Join": grpc.stream_unary_rpc_method_handler(self.join),
            "Each": grpc.stream_stream_rpc_method_handler(self.each),
        }

    async def one(self, request: bytes, context: Any) -> bytes:
        self.metadata.append(dict(context.invocation_metadata()))
        await asyncio.sleep(0)
        self.incoming.append(flows.incoming())
        return request.upper()

    def sync(self, request: bytes, _context: Any) -> bytes:
        return request.upper()

    async def fail(self, _request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.NOT_FOUND, "none")
        raise AssertionError

    def sync_fail(self, _request: bytes, context: Any) -> bytes:
        context.abort(grpc.StatusCode.NOT_FOUND, "none")
        raise AssertionError

    async def crash(self, _request: bytes, _context: Any) -> bytes:
        raise ZeroDivisionError

    async def wait(self, request: bytes, _context: Any) -> bytes:
        try:
            await asyncio.sleep(60)  # sleep: the call is cancelled before the end of this time
        finally:
            self.cancelled.set()
        return request

    async def many(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
        for letter in request:
            yield bytes([letter])

    async def written(self, request: bytes, context: Any) -> None:
        for letter in request:
            await context.write(bytes([letter]))

    def sync_many(self, request: bytes, _context: Any) -> Iterator[bytes]:
        for letter in request:
            yield bytes([letter])

    async def endless(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
        try:
            while True:
                yield request
                await asyncio.sleep(0)
        finally:
            self.cancelled.set()

    async def join(self, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        return b"".join([request async for request in requests])

    async def each(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request.upper()


@asynccontextmanager
async def connection(service: Service, *, add_header: bool) -> AsyncIterator[Any]:
    from stretto.flows.grpcio_aio import FlowServerInterceptor, client_interceptors

    server = grpc.aio.server(interceptors=[FlowServerInterceptor()])
    generic = grpc.method_handlers_generic_handler("test.Service", service.handlers())
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    interceptors = client_interceptors(add_header=add_header)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", interceptors=interceptors) as channel:
        yield channel
    await server.stop(None)


def talk(
    with_channel: Callable[[Any, Service], Coroutine[Any, Any, None]], *, add_header: bool = True
) -> tuple[list[Event], Service]:
    """Run a client's calls; return the recorded events and the service."""

    async def run() -> Service:
        service = Service()
        async with asyncio.timeout(120), connection(service, add_header=add_header) as channel:
            await with_channel(channel, service)
        return service

    with record() as recorded:
        service = asyncio.run(run())
    return recorded.events, service


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with flows_installed():
        yield


async def requests() -> AsyncIterator[bytes]:
    for request in (b"a", b"b"):
        yield request


def arrows(events: list[Event], method: str) -> list[list[tuple[str, str]]]:
    chains: dict[int, list[tuple[str, str]]] = {}
    for event in sorted(events, key=lambda event: event.timestamp):
        if event.kind != END and event.args["method"] == method:
            assert event.args["service"] == "test.Service"
            (flow,) = event.flows + event.terminating_flows
            chains.setdefault(flow, []).append((event.args["role"], event.args["kind"]))
    return list(chains.values())


def test_methods_of_all_kinds_have_arrows() -> None:
    async def converse(channel: Any, _service: Service) -> None:
        for name in ("One", "Sync"):
            assert await channel.unary_unary(f"/test.Service/{name}")(b"x") == b"X"
        for name in ("Many", "Written", "SyncMany"):
            call = channel.unary_stream(f"/test.Service/{name}")(b"abc")
            assert [reply async for reply in call] == [b"a", b"b", b"c"]
        assert await channel.stream_unary("/test.Service/Join")(requests()) == b"ab"
        both = channel.stream_stream("/test.Service/Each")(requests())
        assert [reply async for reply in both] == [b"A", b"B"]

    events, _ = talk(converse)
    for method in ("One", "Sync", "Many", "Written", "SyncMany", "Join", "Each"):
        assert arrows(events, method) == [CALL], method


def test_no_header_is_added_to_a_call_with_traceparent() -> None:
    async def converse(channel: Any, _service: Service) -> None:
        call = channel.unary_unary("/test.Service/One")
        assert await call(b"x", metadata=[("traceparent", PARENT), ("a", "b")]) == b"X"
        assert await call(b"x", metadata=[("a", "b")]) == b"X"

    events, service = talk(converse)
    assert arrows(events, "One") == [CALL, CALL]
    assert [entry["a"] for entry in service.metadata] == ["b", "b"]
    assert ["x-stretto-flow" in entry for entry in service.metadata] == [False, True]
    assert service.incoming == [e.flows[0] for e in events if e.kind == BEGIN and "send" in str(e)]


def test_call_without_traceparent_and_header_has_no_arrow() -> None:
    async def converse(channel: Any, _service: Service) -> None:
        assert await channel.unary_unary("/test.Service/One")(b"x") == b"X"

    events, service = talk(converse, add_header=False)
    assert len(events) == 6
    assert flows.stats() == {"no header": 4}
    assert "x-stretto-flow" not in service.metadata[0]


ABORTED = [*CALL[:2], CALL[3]]
"""Its reply is under way before anybody learns of it."""


@pytest.mark.parametrize(
    ("method", "code", "expected"),
    [
        ("Fail", "NOT_FOUND", ABORTED),
        ("SyncFail", "NOT_FOUND", ABORTED),
        ("Crash", "UNKNOWN", CALL),
        ("None", "UNIMPLEMENTED", [CALL[0], CALL[3]]),
    ],
)
def test_errors_are_recorded_as_replies(
    method: str, code: str, expected: list[tuple[str, str]]
) -> None:
    async def converse(channel: Any, _service: Service) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(f"/test.Service/{method}")(b"x")
        assert caught.value.code().name == code

    events, _ = talk(converse)
    assert arrows(events, method) == [expected]


def test_expired_deadline_is_not_recorded_as_a_reply() -> None:
    async def converse(channel: Any, service: Service) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/test.Service/Wait")(b"x", timeout=0.5)
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        await service.cancelled.wait()

    events, _ = talk(converse)
    (points,) = arrows(events, "Wait")
    assert points[:2] == CALL[:2]
    assert CALL[3] not in points


def test_cancelled_calls_are_not_recorded_as_replies() -> None:
    async def converse(channel: Any, service: Service) -> None:
        call = channel.unary_stream("/test.Service/Endless")(b"x")
        assert await anext(aiter(call)) == b"x"
        call.cancel()
        await service.cancelled.wait()
        call = channel.unary_unary("/test.Service/One")(b"x")
        call.cancel()  # the call is cancelled before the interceptor runs
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await channel.unary_unary("/test.Service/One")(b"x") == b"X"

    events, _ = talk(converse)
    (points,) = arrows(events, "Endless")
    assert points[:2] == CALL[:2]
    assert CALL[3] not in points
    assert arrows(events, "One") == [CALL]


def test_call_without_a_server_has_only_its_request() -> None:
    from stretto.flows.grpcio_aio import client_interceptors

    async def call() -> None:
        interceptors = client_interceptors(add_header=True)
        async with grpc.aio.insecure_channel("127.0.0.1:1", interceptors=interceptors) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await channel.unary_unary("/test.Service/One")(b"x")

    with record() as recorded:
        asyncio.run(call())
    assert arrows(recorded.events, "One") == [CALL[:1]]


def test_concurrent_handlers_have_tracks_of_their_own() -> None:
    async def converse(channel: Any, _service: Service) -> None:
        call = channel.unary_unary("/test.Service/One")
        assert await asyncio.gather(*(call(b"x") for _ in range(5))) == [b"X"] * 5

    events, _ = talk(converse)
    assert arrows(events, "One") == [CALL] * 5
    tracks: dict[int, int] = {}
    for event in events:
        if event.kind in (BEGIN, END):
            depth = tracks[event.track] = tracks.get(event.track, 0) + (3 - 2 * event.kind)
            assert depth in (0, 1)


def test_interceptor_does_nothing_when_flows_are_not_installed() -> None:
    flows.uninstall()

    async def converse(channel: Any, _service: Service) -> None:
        assert await channel.unary_unary("/test.Service/One")(b"x") == b"X"

    events, service = talk(converse)
    assert events == []
    assert "x-stretto-flow" not in service.metadata[0]
