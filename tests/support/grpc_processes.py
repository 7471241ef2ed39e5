"""Two processes connected by gRPC: blocking and asyncio servers, and clients of both.

The command is `python grpc_processes.py`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from stretto import flows
from stretto.flows import grpcio, grpcio_aio

CALLS = 10
PREFIX = "/test.Talk/"


class Blocking:
    """The methods of the blocking gRPC server."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def One(self, request: bytes, _context: Any) -> bytes:  # noqa: N802
        return request

    def Many(self, request: bytes, _context: Any) -> Iterator[bytes]:  # noqa: N802
        yield from (request, request)

    def Fail(self, _request: bytes, context: Any) -> bytes:  # noqa: N802
        context.abort(grpc.StatusCode.NOT_FOUND, "none")
        raise AssertionError

    def Late(self, request: bytes, _context: Any) -> bytes:  # noqa: N802
        assert self.released.wait(60)
        return request

    def Release(self, request: bytes, _context: Any) -> bytes:  # noqa: N802
        self.released.set()
        return request


class Async:
    """The methods of the asyncio gRPC server; each method calls the blocking server.

    Args:
        address: Address of the blocking server.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    async def AsyncOne(self, request: bytes, _context: Any) -> bytes:  # noqa: N802
        interceptors = grpcio_aio.client_interceptors(add_header=True)
        async with grpc.aio.insecure_channel(self.address, interceptors=interceptors) as channel:
            reply: bytes = await channel.unary_unary(PREFIX + "One")(request)
        return reply

    async def AsyncMany(  # noqa: N802
        self, request: bytes, _context: Any
    ) -> AsyncIterator[bytes]:
        for _ in range(2):
            yield request
            await asyncio.sleep(0)

    async def AsyncFail(self, _request: bytes, context: Any) -> bytes:  # noqa: N802
        await context.abort(grpc.StatusCode.NOT_FOUND, "none")
        raise AssertionError


def add_handlers(server: Any, service: Any) -> str:
    """Add the handlers of the service to a server; return the server's address."""
    handlers = {}
    for name in vars(type(service)):
        if name[0].isupper():
            kind = "unary_stream" if name.endswith("Many") else "unary_unary"
            make = getattr(grpc, f"{kind}_rpc_method_handler")
            handlers[name] = make(getattr(service, name))
    generic = grpc.method_handlers_generic_handler("test.Talk", handlers)
    server.add_generic_rpc_handlers((generic,))
    return f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"


def serve(pipe: Any) -> None:
    """Run both servers in the second process."""
    flows.install()
    with ThreadPoolExecutor(2 * CALLS) as pool:
        server = grpc.server(pool, interceptors=[grpcio.FlowServerInterceptor()])
        address = add_handlers(server, Blocking())
        server.start()
        asyncio.run(serve_async(pipe, address))
        server.stop(None).wait()


async def serve_async(pipe: Any, address: str) -> None:
    server = grpc.aio.server(interceptors=[grpcio_aio.FlowServerInterceptor()])
    pipe.send((address, add_handlers(server, Async(address))))
    await server.start()
    pipe.send(None)
    await asyncio.to_thread(pipe.recv)
    await server.stop(30)


def call_blocking(address: str) -> None:
    interceptor = grpcio.FlowClientInterceptor(add_header=True)
    with grpc.insecure_channel(address) as plain:
        channel = grpc.intercept_channel(plain, interceptor)
        one, fail, late = (channel.unary_unary(PREFIX + name) for name in ("One", "Fail", "Late"))
        for _ in range(CALLS):
            assert one(b"x") == b"x"
            assert list(channel.unary_stream(PREFIX + "Many")(b"x")) == [b"x", b"x"]
            assert expect_error(fail) == grpc.StatusCode.NOT_FOUND
            assert expect_error(late, timeout=0.05) == grpc.StatusCode.DEADLINE_EXCEEDED
        channel.unary_unary(PREFIX + "Release")(b"")


def expect_error(call: Any, **options: Any) -> Any:
    try:
        call(b"x", **options)
    except grpc.RpcError as error:
        return error.code()
    raise AssertionError


async def call_async(address: str) -> None:
    interceptors = grpcio_aio.client_interceptors(add_header=True)
    async with grpc.aio.insecure_channel(address, interceptors=interceptors) as channel:
        one = channel.unary_unary(PREFIX + "AsyncOne")
        assert await asyncio.gather(*(one(b"x") for _ in range(CALLS))) == [b"x"] * CALLS
        for _ in range(CALLS):
            many = channel.unary_stream(PREFIX + "AsyncMany")(b"x")
            assert [reply async for reply in many] == [b"x", b"x"]
            fail = channel.unary_unary(PREFIX + "AsyncFail")(b"x")
            assert await fail.code() == grpc.StatusCode.NOT_FOUND


def main() -> None:
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    child = context.Process(target=serve, args=(far,))
    child.start()
    blocking, other = near.recv()
    near.recv()
    call_blocking(blocking)
    asyncio.run(call_async(other))
    near.send(None)
    child.join()
    raise SystemExit(child.exitcode or bool(flows.stats()))


if __name__ == "__main__":
    flows.install()
    main()
