"""The bridge between a WebSocket client and a service, on real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from stretto.base.errors import ConfigError, TransportError
from stretto.viewer import bridge as module
from stretto.viewer.access import PUBLIC_UI
from stretto.viewer.bridge import MAX_MESSAGE_BYTES, Bridge
from stretto.viewer.connection_slots import MAX_CONNECTIONS, MAX_REFUSED_PER_USER

HANG_S = 30.0


class Service:
    """A fake service that accepts the bridge's connections and keeps them in `ends`."""

    def __init__(self) -> None:
        self.runs = True
        self.ends: list[socket.socket] = []

    def connect(self) -> socket.socket:
        if not self.runs:
            raise TransportError("can't connect to /nowhere")
        near, far = socket.socketpair()
        far.setblocking(False)
        self.ends.append(far)
        return near

    async def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            got = await asyncio.get_running_loop().sock_recv(self.ends[-1], 1 << 16)
            assert got
            data += got
        return data

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.ends[-1], data)

    async def ended(self) -> bool:
        return await asyncio.get_running_loop().sock_recv(self.ends[-1], 1) == b""

    def close(self) -> None:
        for end in self.ends:
            end.close()


class World:
    """A bridge to a fake service, and the users that the bridge allows."""

    def __init__(self) -> None:
        self.service = Service()
        self.users = {os.geteuid()}
        self.refusals: list[str] = []
        self.bridge = Bridge(self.service.connect, self.users, [PUBLIC_UI], self.refusals.append)
        self.port = 0

    def page(self, path: str = "/traced", name: str = "127.0.0.1", **options: Any) -> connect:
        settings: dict[str, Any] = {"origin": PUBLIC_UI, "host": "127.0.0.1"} | options
        return connect(f"ws://{name}:{self.port}{path}", max_size=None, **settings)

    async def without_connections(self) -> None:
        """Run the loop until the bridge has no connections."""
        while self.bridge._slots._counts:
            await asyncio.sleep(0)

    async def refusal(self, path: str = "/traced", **options: Any) -> tuple[int, str]:
        """Return status and body of the refusal of a page."""
        with pytest.raises(InvalidStatus) as caught:
            await self.page(path, **options)
        return caught.value.response.status_code, caught.value.response.body.decode()


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World()
    made.port = await made.bridge.start(0)
    try:
        yield made
    finally:
        made.bridge._server.close()
        await made.bridge._server.wait_closed()
        made.service.close()


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(HANG_S), world() as made:
            await scenario(made)

    asyncio.run(within())


async def close_code(page: ClientConnection) -> tuple[int, str]:
    """Skip messages, and return code and reason of the bridge's close frame."""
    with suppress(ConnectionClosed):
        while True:
            await page.recv()
    assert page.close_code is not None
    return page.close_code, page.close_reason or ""


class TestWebSocketHandshake:
    @pytest.mark.parametrize(
        ("status", "path", "options"),
        [
            (403, "/traced", {"origin": None}),
            (403, "/traced", {"origin": "https://evil.example"}),
            (403, "/traced", {"name": "evil.example"}),
            (400, "/traced", {"additional_headers": {"Host": "127.0.0.1"}}),
            (400, "/traced", {"additional_headers": {"Origin": "https://evil.example"}}),
            (404, "/adb", {}),
            (404, "/", {}),
            (404, "/traced/x", {}),
        ],
    )
    def test_page_without_permission_is_refused_before_the_service_is_connected(
        self, status: int, path: str, options: dict[str, Any]
    ) -> None:
        async def scenario(world: World) -> None:
            got, body = await world.refusal(path, **options)
            assert (got, body) == (status, f"stretto: {world.refusals[-1]}\n")
            assert world.service.ends == []

        run(scenario)

    def test_refusal_of_an_adb_request_says_that_there_are_no_android_devices(self) -> None:
        async def scenario(world: World) -> None:
            assert "Android" in (await world.refusal("/adb"))[1]

        run(scenario)

    def test_page_is_refused_until_the_service_runs(self) -> None:
        async def scenario(world: World) -> None:
            world.service.runs = False
            assert await world.refusal() == (503, "stretto: can't connect to /nowhere\n")
            world.service.runs = True
            async with world.page() as page:
                await page.send(b"there")
                assert await world.service.receive(5) == b"there"

        run(scenario)

    def test_request_without_websocket_handshake_leaves_no_service_connection(self) -> None:
        async def scenario(world: World) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            writer.write(
                b"GET /traced HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: %b\r\n\r\n"
                % (world.port, PUBLIC_UI.encode())
            )
            assert (await reader.read()).startswith(b"HTTP/1.1 426 ")
            writer.close()
            await writer.wait_closed()
            assert await world.service.ended()

        run(scenario)

    def test_invalid_origin_is_refused_at_the_start(self) -> None:
        async def start() -> None:
            await Bridge(Service().connect, (), ["http://localhost:1/path"]).start(0)

        with pytest.raises(ConfigError, match="no origin"):
            asyncio.run(start())


class TestByteTransfer:
    def test_bytes_are_transferred_in_both_directions(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as page:
                await page.send(b"to the ")
                await page.send([b"ser", b"vice"])
                assert await world.service.receive(14) == b"to the service"
                await world.service.send(b"to the page")
                assert await page.recv() == b"to the page"

        run(scenario)

    def test_long_streams_are_transferred_completely_in_both_directions(self) -> None:
        async def scenario(world: World) -> None:
            sent = bytes(range(256)) * 40_000
            async with world.page() as page:
                async with asyncio.TaskGroup() as group:
                    group.create_task(world.service.send(sent))
                    got = b""
                    while len(got) < len(sent):
                        message = await page.recv()
                        assert isinstance(message, bytes)
                        got += message
                assert got == sent
                async with asyncio.TaskGroup() as group:
                    received = group.create_task(world.service.receive(len(sent)))
                    for start in range(0, len(sent), MAX_MESSAGE_BYTES):
                        await page.send(sent[start : start + MAX_MESSAGE_BYTES])
                assert received.result() == sent

        run(scenario)

    def test_each_page_has_its_own_service_connection(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as one:
                async with world.page() as other:
                    await other.send(b"other")
                    assert await world.service.receive(5) == b"other"
                world.service.ends.reverse()
                await one.send(b"one")
                assert await world.service.receive(3) == b"one"

        run(scenario)


class TestBackPressure:
    def test_page_that_does_not_read_makes_the_service_wait(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page(max_queue=1) as page:
                sent = await fill(world.service.ends[-1])
                assert sent < 64 << 20
                got = 0
                while got < sent:
                    got += len(await page.recv())

        run(scenario)

    def test_service_that_does_not_read_makes_the_page_wait(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as page:
                block, sent = bytes(60_000), 0
                with suppress(TimeoutError):
                    while sent < 256 << 20:
                        async with asyncio.timeout(1):
                            await page.send(block)
                        sent += len(block)
                assert sent < 64 << 20
                assert len(await world.service.receive(sent)) >= sent

        run(scenario)


async def fill(end: socket.socket) -> int:
    """Send until the socket accepts no bytes for a second; return the number of bytes sent."""
    loop, sent = asyncio.get_running_loop(), 0
    while sent < 256 << 20:
        writable = loop.create_future()
        loop.add_writer(end, lambda future=writable: future.done() or future.set_result(None))
        try:
            await asyncio.wait_for(writable, 1)
        except TimeoutError:
            break
        finally:
            loop.remove_writer(end)
        sent += end.send(bytes(1 << 16))
    return sent


class TestDisconnection:
    def test_page_that_closes_ends_the_connection_to_the_service(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as page:
                await page.send(b"last bytes")
            assert page.close_code == 1000
            assert await world.service.receive(10) == b"last bytes"
            assert await world.service.ended()

        run(scenario)

    def test_page_that_vanishes_ends_the_connection_to_the_service(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as page:
                page.transport.abort()
                assert await world.service.ended()

        run(scenario)

    def test_page_is_closed_after_the_last_bytes_of_a_service_that_ends(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as page:
                await world.service.send(b"last bytes")
                world.service.close()
                assert await page.recv() == b"last bytes"
                assert await close_code(page) == (1001, "the tracing service hung up")

        run(scenario)

    def test_slow_page_receives_all_bytes_sent_before_the_service_closed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "CLOSE_S", 0.1)

        async def scenario(world: World) -> None:
            async with world.page(max_queue=1) as page:
                sent = await fill(world.service.ends[-1])
                world.service.close()
                # After ten times CLOSE_S, the page is still connected.
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(10 * module.CLOSE_S):
                        await page.wait_closed()
                got = 0
                while got < sent:
                    got += len(await page.recv())
                assert (await close_code(page))[0] == 1001

        run(scenario)

    def test_page_that_does_not_answer_a_close_frame_is_disconnected(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "CLOSE_S", 0.1)

        async def scenario(world: World) -> None:
            async with world.page(max_queue=1) as page:
                page.transport.pause_reading()  # type: ignore[attr-defined]
                world.service.close()
                await world.without_connections()
                page.transport.resume_reading()  # type: ignore[attr-defined]

        run(scenario)

    def test_service_that_does_not_read_the_last_bytes_is_disconnected(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "CLOSE_S", 0.1)

        async def scenario(world: World) -> None:
            async with world.page() as page:
                for _ in range(10):
                    await page.send(bytes(60_000))
                page.transport.close()
                await world.without_connections()

        run(scenario)

    @pytest.mark.parametrize(
        ("message", "code"), [("text", 1003), (bytes(MAX_MESSAGE_BYTES + 1), 1009)]
    )
    def test_unsupported_message_closes_the_page(self, message: str | bytes, code: int) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as page:
                await page.send(message)
                assert (await close_code(page))[0] == code
                assert await world.service.ended()

        run(scenario)

    def test_page_that_breaks_the_protocol_is_closed(self) -> None:
        async def scenario(world: World) -> None:
            async with world.page() as page:
                await page.send(b"good")
                page.transport.write(b"\xff\xff" + bytes(100))
                assert await world.service.receive(4) == b"good"
                assert (await close_code(page))[0] == 1002
                assert await world.service.ended()

        run(scenario)


class TestPeerUsers:
    def test_other_user_is_refused(self) -> None:
        async def scenario(world: World) -> None:
            world.users.clear()
            status, body = await world.refusal()
            assert status == 403
            assert body.startswith("stretto: another user of this machine started this")
            assert world.service.ends == []

        run(scenario)

    def test_silent_connections_of_other_users_are_few_and_end_soon(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "REFUSED_S", 0.1)

        async def scenario(world: World) -> None:
            world.users.clear()
            pages = [
                await asyncio.open_connection("127.0.0.1", world.port)
                for _ in range(3 * MAX_REFUSED_PER_USER)
            ]
            for reader, writer in pages:
                assert await reader.read() == b""
                writer.close()
            assert not world.bridge._slots._counts

        run(scenario)

    def test_connection_above_the_maximum_number_is_closed(self) -> None:
        async def scenario(world: World) -> None:
            pages = [
                await asyncio.open_connection("127.0.0.1", world.port)
                for _ in range(MAX_CONNECTIONS + 1)
            ]
            assert await pages[-1][0].read() == b""
            for _, writer in pages:
                writer.close()
            await world.without_connections()
            async with world.page():
                pass

        run(scenario)


def test_refused_pages_that_stay_open_block_no_allowed_page() -> None:
    request = (
        "GET /traced HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Version: 13\r\nOrigin: https://evil.example\r\n\r\n"
    )

    async def scenario(world: World) -> None:
        writers = []
        for _ in range(2 * MAX_CONNECTIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            writer.write(request.format(world.port).encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 403")
            writers.append(writer)
        async with world.page():
            pass
        assert len(world.bridge._refused) <= MAX_CONNECTIONS
        for writer in writers:
            writer.close()

    run(scenario)


def test_port_in_use_is_an_error() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(TransportError, match="in use"):
            await Bridge(world.service.connect, (), []).start(world.port)

    run(scenario)
