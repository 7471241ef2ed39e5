"""Tests of the asyncio client and server, also together with the blocking client and server."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fidl_support.async_talk import AsyncTalker, conversation
from fidl_support.talk import serving, talk
from stretto_fidl.bindings import ChannelEnd, Vmo, channel
from stretto_fidl.codec import TransactionHeader, decode_header, encode_epitaph
from stretto_fidl.errors import FidlError
from stretto_fidl.transport import (
    AsyncClient,
    AsyncServer,
    Client,
    ClosedError,
    Deferred,
    DomainError,
    PeerError,
    UnknownMethodError,
)

ORDINAL = {method.name: method.ordinal for method in talk.Talk.METHODS}


def run(coroutine: Any) -> None:
    asyncio.run(coroutine)


@pytest.mark.parametrize("kind", [socket.SOCK_SEQPACKET, socket.SOCK_STREAM])
def test_async_calls_return_replies_and_errors(kind: int) -> None:
    async def main() -> None:
        handler = AsyncTalker()
        async with conversation(handler, kind=kind) as (client, _, _):
            assert (await client.Echo(number=3)).number == 3
            assert (await client.call("Echo", talk.TalkEchoRequest(number=5))).number == 5
            assert (await client.Divide(a=7, b=2)).quotient == 3
            with pytest.raises(DomainError):
                await client.Divide(a=7, b=0)
            await client.Fire(number=6)
            numbers = await asyncio.gather(*(client.Echo(number=n) for n in range(100)))
            assert [reply.number for reply in numbers] == list(range(100))
            assert handler.fired == [6]
            back = (await client.Pass(what=Vmo.create(b"content"))).what
            assert back.read() == b"content"
            back.close()

    run(main())


def test_handlers_run_concurrently_up_to_the_limit() -> None:
    async def main() -> None:
        handler = AsyncTalker()
        async with conversation(handler, in_flight=3) as (client, _, _):
            calls = [asyncio.create_task(client.Later(number=n)) for n in range(7)]
            while handler.running < 3:
                await asyncio.sleep(0)
            handler.gate.set()
            replies = await asyncio.gather(*calls)
            assert [reply.number for reply in replies] == list(range(7))
            assert handler.most == 3

    run(main())


def test_reply_of_a_cancelled_call_is_dropped() -> None:
    async def main() -> None:
        handler = AsyncTalker()
        async with conversation(handler) as (client, _, _):
            call = asyncio.create_task(client.Later(number=1))
            while not handler.running:
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert client._conversation.waiters == {}
            handler.gate.set()
            assert (await client.Later(number=2)).number == 2

    run(main())


def test_handlers_are_cancelled_when_the_client_disconnects() -> None:
    async def main() -> None:
        handler = AsyncTalker()
        async with conversation(handler) as (client, _, task):
            call = asyncio.create_task(client.Later(number=1))
            while not handler.running:
                await asyncio.sleep(0)
            client.close()
            with pytest.raises(ClosedError):
                await call
            await task
            assert handler.cancelled == 1

    run(main())


def test_exception_of_a_handler_ends_the_channel() -> None:
    class Wrong(AsyncTalker):
        async def Echo(self, request: Any) -> Any:  # noqa: N802
            await asyncio.sleep(0)
            raise ZeroDivisionError

    async def main(method: str) -> None:
        async with conversation(Wrong()) as (client, _, task):
            with pytest.raises(ClosedError, match="INTERNAL"):
                await (client.Crash() if method == "Crash" else client.Echo(number=1))
            with pytest.raises(ZeroDivisionError):
                await task

    run(main("Crash"))
    run(main("Echo"))


def test_events_are_received_in_order() -> None:
    async def main() -> None:
        async with conversation() as (client, server, _):
            await server.OnTick(number=1)
            assert (await client.next_event()).payload.number == 1
            waiting = asyncio.create_task(client.next_event())
            await asyncio.sleep(0)
            await server.OnRest()
            assert await waiting == ("OnRest", ORDINAL["OnRest"], None)
            await server.OnTick(number=2)
            server.close()
            assert [event.payload.number async for event in client.events()] == [2]

    run(main())


def test_events_call_the_methods_of_an_object() -> None:
    seen: list[Any] = []

    class Events:
        async def OnTick(self, payload: Any) -> None:  # noqa: N802
            seen.append(payload.number)

        def OnRest(self) -> None:  # noqa: N802
            seen.append("rest")

    async def main() -> None:
        async with conversation() as (client, server, _):
            await server.OnTick(number=1)
            await server.OnRest()
            server.close(-28)
            with pytest.raises(ClosedError, match="UNAVAILABLE"):
                await client.dispatch_events(Events())
        assert seen == [1, "rest"]

    run(main())


@asynccontextmanager
async def by_hand(**options: Any) -> AsyncIterator[tuple[Any, socket.socket]]:
    near, far = channel()
    with socket.socket(fileno=far.detach()) as peer:
        peer.settimeout(30)
        async with asyncio.timeout(60), AsyncClient(talk.Talk, near, **options) as client:
            yield client, peer


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (lambda txid: TransactionHeader(txid, ORDINAL["Later"]).encode() + bytes(8), PeerError),
        (lambda txid: TransactionHeader(txid + 1, ORDINAL["Echo"]).encode(), PeerError),
        (lambda txid: TransactionHeader(txid, ORDINAL["Echo"]).encode(), PeerError),
        (lambda txid: TransactionHeader(0, 99).encode(), PeerError),
        (lambda txid: b"short", PeerError),
        (lambda txid: encode_epitaph(-1), ClosedError),
    ],
)
def test_invalid_replies_end_the_channel(reply: Any, error: type[Exception]) -> None:
    async def main() -> None:
        async with by_hand() as (client, peer):
            call = asyncio.create_task(client.Echo(number=1))
            await asyncio.sleep(0)
            peer.send(reply(decode_header(peer.recv(65536)).txid))
            with pytest.raises(error):
                await call
            assert peer.recv(1) == b""

    run(main())


def test_reply_of_an_unknown_method_is_an_error() -> None:
    async def main() -> None:
        async with by_hand() as (client, peer):
            call = asyncio.create_task(client.Divide(a=1, b=1))
            await asyncio.sleep(0)
            header = decode_header(peer.recv(65536))
            body = bytes([3, 0, 0, 0, 0, 0, 0, 0, 0xFE, 255, 255, 255, 0, 0, 1, 0])
            peer.send(header.encode() + body)
            with pytest.raises(UnknownMethodError):
                await call

    run(main())


def test_write_after_the_peer_has_closed_raises_its_epitaph() -> None:
    async def main() -> None:
        async with by_hand() as (client, peer):
            peer.send(encode_epitaph(-28))
            peer.close()
            for call in (client.Echo, client.Fire):
                with pytest.raises(ClosedError, match="UNAVAILABLE"):
                    await call(number=1)

    run(main())


@pytest.mark.parametrize("kind", [socket.SOCK_SEQPACKET, socket.SOCK_STREAM])
def test_async_writers_wait_while_the_socket_is_full(kind: int) -> None:
    async def main() -> None:
        near, far = socket.socketpair(socket.AF_UNIX, kind)
        async with AsyncClient(talk.Talk, ChannelEnd(near.detach())) as client:
            calls = [asyncio.create_task(client.Fire(number=n)) for n in range(5000)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not all(call.done() for call in calls)
            with serving(ChannelEnd(far.detach())) as there:
                async with asyncio.timeout(60):
                    await asyncio.gather(*calls)
                    await client.Echo(number=1)
                assert there.handler.fired == list(range(5000))

    run(main())


def test_invalid_messages_end_the_channel_with_an_epitaph() -> None:
    async def main(message: bytes, status: int) -> None:
        near, far = channel()
        with socket.socket(fileno=near.detach()) as peer:
            peer.settimeout(30)
            server = AsyncServer(talk.Talk, far, AsyncTalker())
            peer.send(message)
            with pytest.raises(PeerError):
                await server.serve()
            assert peer.recv(65536) == encode_epitaph(status)
            assert peer.recv(1) == b""

    run(main(TransactionHeader(0, 99).encode(), -2))
    run(main(TransactionHeader(0, ORDINAL["Echo"]).encode() + bytes(8), -10))
    run(main(TransactionHeader(1, ORDINAL["Echo"]).encode(), -10))
    run(main(b"short", -10))


def test_asyncio_server_replies_to_unknown_methods() -> None:
    async def main() -> None:
        near, far = channel()
        with socket.socket(fileno=near.detach()) as peer:
            peer.settimeout(30)
            handler = AsyncTalker()
            server = AsyncServer(talk.Talk, far, handler)
            peer.send(TransactionHeader(0, 98, True).encode())
            peer.send(TransactionHeader(7, 99, True).encode())
            task = asyncio.create_task(server.serve())
            while len(handler.unknown) < 2:
                await asyncio.sleep(0)
            reply = peer.recv(65536)
            assert decode_header(reply) == TransactionHeader(7, 99, True)
            assert handler.unknown == [98, 99]
            server.close()
            await task

    run(main())


def test_blocking_client_calls_an_asyncio_server() -> None:
    async def main() -> None:
        near, far = channel()
        server = AsyncServer(talk.Talk, far, AsyncTalker())
        task = asyncio.create_task(server.serve())

        def calls() -> list[int]:
            with Client(talk.Talk, near) as client:
                return [client.Echo(number=n).number for n in range(10)]

        assert await asyncio.to_thread(calls) == list(range(10))
        await task

    run(main())


def test_cancelled_server_closes_the_channel() -> None:
    async def main() -> None:
        async with conversation() as (client, _, task):
            await client.Echo(number=1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(ClosedError):
                await client.Echo(number=1)

    run(main())


def test_handler_whose_task_was_cancelled_ends_the_channel() -> None:
    class Handler(AsyncTalker):
        async def Echo(self, request: Any) -> Any:  # noqa: N802
            # sleep: the task is cancelled while it sleeps
            job = asyncio.create_task(asyncio.sleep(3600))
            asyncio.get_running_loop().call_soon(job.cancel)
            await job

        def Later(self, request: Any) -> Any:  # noqa: N802
            # The server calls this method directly, because it isn't a coroutine function.
            return self.Echo(request)

        async def Crash(self) -> None:  # noqa: N802
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            # sleep: raises CancelledError at once, because the task has been cancelled
            await asyncio.sleep(3600)

    async def main() -> None:
        for name in ("Echo", "Later", "Crash"):
            near, far = channel()
            serving = asyncio.create_task(AsyncServer(talk.Talk, far, Handler()).serve())
            async with AsyncClient(talk.Talk, near) as client:
                members = {} if name == "Crash" else {"number": 1}
                with pytest.raises(ClosedError, match="INTERNAL"):
                    await asyncio.wait_for(getattr(client, name)(**members), 30)
            with pytest.raises(FidlError, match="was cancelled"):
                await serving

    run(main())


@pytest.mark.parametrize("coroutine", [False, True])
def test_deferred_replies_of_an_asyncio_server_are_sent(coroutine: bool) -> None:
    deferreds: list[Deferred] = []

    class Plain(AsyncTalker):
        def Later(self, request: Any) -> Any:  # noqa: N802
            deferreds.append(deferred := Deferred())
            return deferred

        def Divide(self, request: Any) -> Any:  # noqa: N802
            return self.Later(request)

    class Coroutine(Plain):
        async def Later(self, request: Any) -> Any:  # noqa: N802
            return super().Later(request)

        async def Divide(self, request: Any) -> Any:  # noqa: N802
            return super().Later(request)

    async def main() -> None:
        async with conversation(Coroutine() if coroutine else Plain()) as (client, _, _):
            calls = [
                asyncio.create_task(call)
                for call in (
                    client.Later(number=1),
                    client.Later(number=2),
                    client.Divide(a=1, b=1),
                )
            ]
            while len(deferreds) < 3:
                await asyncio.sleep(0)
            first, second, third = deferreds
            await asyncio.to_thread(second.resolve, talk.TalkLaterResponse(number=22))
            assert (await calls[1]).number == 22
            first.resolve(talk.TalkLaterResponse(number=11))
            third.reject(7)
            assert (await calls[0]).number == 11
            with pytest.raises(DomainError, match="7"):
                await calls[2]
            never = asyncio.create_task(client.Later(number=3))
            while len(deferreds) < 4:
                await asyncio.sleep(0)
        with pytest.raises(ClosedError):
            await never

    run(main())
    deferreds[3].resolve(
        talk.TalkLaterResponse(number=33)
    )  # The call has been cancelled, so the reply is dropped.


@pytest.mark.parametrize("in_cycle", [False, True])
def test_client_closes_its_channel_when_its_last_reference_is_dropped(in_cycle: bool) -> None:
    async def main() -> None:
        near, far = channel()
        serving = asyncio.create_task(AsyncServer(talk.Talk, far, AsyncTalker()).serve())
        client = AsyncClient(talk.Talk, near)
        assert (await client.Echo(number=1)).number == 1
        if in_cycle:
            client.itself = client
        del client
        gc.collect()
        await asyncio.wait_for(serving, 30)
        again, _ = channel()
        async with AsyncClient(talk.Talk, again):
            pass  # The new channel's descriptor has the number of the closed descriptor.

    run(main())


def test_client_with_waiting_callers_stays_open() -> None:
    async def main() -> None:
        near, far = channel()
        server = AsyncServer(talk.Talk, far, AsyncTalker())
        serving = asyncio.create_task(server.serve())
        client = AsyncClient(talk.Talk, near)
        got: list[int] = []

        async def listen(client: AsyncClient) -> None:
            async for event in client.events():
                got.append(event.payload.number)  # noqa: PERF401

        call = asyncio.ensure_future(client.Echo(number=1))
        call.add_done_callback(lambda done: got.append(done.result().number))
        asyncio.create_task(listen(client))  # noqa: RUF006  # only the loop knows it
        await asyncio.sleep(0)
        del client, call
        gc.collect()
        while len(got) < 1:
            await asyncio.sleep(0)
        gc.collect()
        await server.OnTick(number=2)
        while len(got) < 2:
            await asyncio.sleep(0)
        assert got == [1, 2]
        server.close()
        await serving
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    run(main())
