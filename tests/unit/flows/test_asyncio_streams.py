"""TracedStream: each message has its own flow or none, never the flow of another message."""

from __future__ import annotations

import asyncio
import random
import socket
from asyncio import StreamReader
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from stretto import flows
from stretto.flows.asyncio_streams import TracedStream
from tests.support.flow_chains import ONE_WAY, arrows
from tests.support.recorded_events import BEGIN, record
from tests.support.traced_greeter import flows_installed


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with flows_installed():
        yield


@asynccontextmanager
async def connected(limit: int = 1000) -> AsyncIterator[tuple[TracedStream, TracedStream]]:
    """Connect a client and a server over a socket pair."""
    near, far = socket.socketpair()
    client, server = [
        TracedStream(
            *await asyncio.open_connection(sock=end, limit=limit),
            category="test.streams",
            is_server=end is far,
        )
        for end in (near, far)
    ]
    try:
        yield client, server
    finally:
        for each in (client, server):
            each.writer.close()
            await each.writer.wait_closed()


def test_messages_over_asyncio_streams_have_flows() -> None:
    async def exchange() -> list[bytes]:
        near, far = socket.socketpair()
        ends = [await asyncio.open_connection(sock=each) for each in (near, far)]
        client = TracedStream(*ends[0], category="test.streams", is_server=False)
        server = TracedStream(*ends[1], category="test.streams", is_server=True)
        heard = []
        for line in (b"one\n", b"two\n"):
            await client.write(line)
            heard.append(await server.read(server.reader.readline()))
            await server.write(b"ack\n", "ack")
            with client.handling("ack"):
                heard.append(await client.reader.readline())
        client.writer.close()
        await client.writer.wait_closed()
        heard.append(await server.read(server.reader.readline()))
        server.writer.close()
        await server.writer.wait_closed()
        return heard

    with record() as recorded:
        assert asyncio.run(exchange()) == [b"one\n", b"ack\n", b"two\n", b"ack\n", b""]
    assert arrows(recorded.events, "message") == [ONE_WAY] * 2
    assert len(arrows(recorded.events, "ack")) == 2


async def body(reader: StreamReader) -> bytes:
    """Read the length, which is one byte, and the message of that length."""
    size = await reader.readexactly(1)
    return await reader.readexactly(size[0])


async def exactly(reader: StreamReader) -> Awaitable[bytes]:
    """Read the length, which is one byte; return an awaitable that reads the message."""
    size = await reader.readexactly(1)
    return reader.readexactly(size[0])


@pytest.mark.parametrize("at_once", [False, True])
def test_messages_with_empty_bodies_have_flows(*, at_once: bool) -> None:
    bodies = [b"a", b"", b"ccc", b"", b""]

    async def exchange() -> list[bytes]:
        heard = []
        async with connected() as (client, server):
            for each in bodies:
                await client.write(bytes([len(each)]) + each, f"{len(heard)}")
                reading = body(server.reader) if at_once else await exactly(server.reader)
                heard.append(await server.read(reading, f"{len(heard)}"))
        return heard

    with record() as recorded:
        assert asyncio.run(exchange()) == bodies
    for number in range(len(bodies)):
        assert arrows(recorded.events, str(number)) == [ONE_WAY]
    assert flows.stats() == {}


def test_end_of_the_stream_is_no_message() -> None:
    async def exchange() -> None:
        async with connected() as (client, server):
            await client.write(b"\0", "m")
            client.writer.write_eof()
            assert await server.read(await exactly(server.reader), "m") == b""
            assert await server.read(server.reader.readline(), "m") == b""
            with pytest.raises(asyncio.IncompleteReadError):
                await server.read(server.reader.readexactly(3), "m")
            await server.write(b"bye\n", "m")
            await client.read(client.reader.readline(), "m")

    with record() as recorded:
        asyncio.run(exchange())
    assert arrows(recorded.events, "m") == [ONE_WAY] * 2


def line(reader: StreamReader) -> Awaitable[bytes]:
    return reader.readline()


def until(reader: StreamReader) -> Awaitable[bytes]:
    return reader.readuntil(b"\n")


@pytest.mark.parametrize(
    ("read", "error"), [(line, ValueError), (until, asyncio.LimitOverrunError)]
)
def test_messages_after_a_too_long_line_have_no_flow(
    read: Callable[[StreamReader], Awaitable[bytes]], error: type[Exception]
) -> None:
    async def exchange() -> None:
        async with connected(limit=50) as (client, server):
            await client.write(b"before\n", "before")
            await server.read(read(server.reader), "before")
            await client.write(b"x" * 60 + b"\n", "long")
            with pytest.raises(error):
                await server.read(read(server.reader))
            if read is until:
                await server.reader.readexactly(61)
            await client.write(b"after\n", "after")
            assert await server.read(read(server.reader), "after") == b"after\n"
            await server.write(b"answer\n", "answer")
            await client.read(client.reader.readline(), "answer")

    with record() as recorded:
        asyncio.run(exchange())
    assert arrows(recorded.events, "before") == [ONE_WAY]
    assert arrows(recorded.events, "answer") == [ONE_WAY]
    received = [e for e in recorded.events if e.name == "after" and e.args.get("role") == "receive"]
    assert [e.flows + e.terminating_flows for e in received] == [[]]
    assert flows.stats() == {"not synchronised": 1}


@pytest.mark.parametrize("read", [line, until, body])
def test_cancelled_read_breaks_flows_only_if_it_may_have_consumed_data(
    read: Callable[[StreamReader], Awaitable[bytes]],
) -> None:
    """A cancelled `readline` loses no data; a cancelled coroutine with two reads may lose some."""

    async def exchange() -> None:
        async with connected() as (client, server):
            reading = asyncio.ensure_future(server.read(read(server.reader)))
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await client.write(b"\1\n", "m")
            await server.read(read(server.reader), "m")

    with record() as recorded:
        asyncio.run(exchange())
    if read is body:
        assert flows.stats() == {"not synchronised": 1}
    else:
        assert arrows(recorded.events, "m") == [ONE_WAY]
        assert flows.stats() == {}


def test_message_whose_drain_is_cancelled_has_a_flow() -> None:
    async def exchange() -> None:
        async with connected(limit=1 << 20) as (client, server):
            data = bytes(1 << 22) + b"\n"
            writing = asyncio.ensure_future(client.write(data, "large"))
            await asyncio.sleep(0)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            assert await server.read(server.reader.readexactly(len(data)), "large") == data
            await client.write(b"x\n", "small")
            await server.read(server.reader.readline(), "small")

    with record() as recorded:
        asyncio.run(exchange())
    assert arrows(recorded.events, "large") == [ONE_WAY]
    assert arrows(recorded.events, "small") == [ONE_WAY]


def test_messages_read_after_the_client_closed_have_flows(tmp_path: object) -> None:
    """The stream's key is known because the stream was created before the client closed."""

    async def exchange() -> None:
        made = asyncio.Event()
        gone = asyncio.Event()
        done = asyncio.Event()

        async def serve(reader: StreamReader, writer: asyncio.StreamWriter) -> None:
            server = TracedStream(reader, writer, category="test.streams", is_server=True)
            made.set()
            await gone.wait()
            while await server.read(reader.readline()):
                pass
            writer.close()
            done.set()

        listener = await asyncio.start_unix_server(serve, f"{tmp_path}/sock")
        ends = await asyncio.open_unix_connection(f"{tmp_path}/sock")
        client = TracedStream(*ends, category="test.streams", is_server=False)
        await made.wait()
        for _ in range(3):
            await client.write(b"x\n")
        client.writer.close()
        await client.writer.wait_closed()
        gone.set()
        await done.wait()
        listener.close()
        await listener.wait_closed()

    with record() as recorded:
        asyncio.run(exchange())
    assert arrows(recorded.events, "message") == [ONE_WAY] * 3
    assert flows.stats() == {}


def test_stream_created_after_the_client_closed_has_no_key() -> None:
    async def exchange() -> None:
        near, far = socket.socketpair()
        client = TracedStream(
            *await asyncio.open_connection(sock=near), category="test.streams", is_server=False
        )
        await client.write(b"x\n")
        client.writer.close()
        await client.writer.wait_closed()
        reader, writer = await asyncio.open_connection(sock=far)
        server = TracedStream(reader, writer, category="test.streams", is_server=True)
        assert await server.read(reader.readline()) == b"x\n"
        writer.close()

    with record():
        asyncio.run(exchange())
    assert flows.stats() == {"peer gone": 1}


async def read_randomly(dice: random.Random, server: TracedStream) -> bytes:
    """Read to the end of a line by a random method; return b"" at the end of the stream."""
    reader = server.reader
    if dice.random() < 0.1:
        reading = asyncio.ensure_future(server.read(reader.readline()))
        await asyncio.sleep(0)
        if reading.cancel():
            with pytest.raises(asyncio.CancelledError):
                await reading
        else:
            return reading.result()
    if dice.random() < 0.5:
        return await server.read(reader.readline())
    try:
        return await server.read(reader.readuntil(b"\n"))
    except asyncio.LimitOverrunError as error:
        await reader.readexactly(error.consumed)
        raise ValueError("too long") from error
    except asyncio.IncompleteReadError as error:
        return error.partial


@pytest.mark.parametrize("seed", range(12))
def test_flows_never_connect_different_messages(seed: int) -> None:
    dice = random.Random(seed)
    heard: list[bytes] = []
    too_long = []

    async def listen(server: TracedStream) -> None:
        while True:
            try:
                data = await read_randomly(dice, server)
            except ValueError:
                too_long.append(len(heard))
                continue
            if not data:
                return
            heard.append(data)

    async def exchange() -> None:
        async with connected(limit=60) as (client, server):
            listening = asyncio.ensure_future(listen(server))
            for number in range(40):
                size = 100 if number > 10 and dice.random() < 0.05 else dice.randrange(40)
                await client.write(b"%d:" % number + b"x" * size + b"\n")
                if dice.random() < 0.5:
                    await asyncio.sleep(0)
            client.writer.write_eof()
            await listening

    with record() as recorded:
        asyncio.run(exchange())
    points: dict[str, list[int]] = {"send": [], "receive": []}
    for event in recorded.events:
        if event.kind == BEGIN:
            points[event.args["role"]].append((event.flows + event.terminating_flows or [0])[0])
    sent = {flow: number for number, flow in enumerate(points["send"]) if flow}
    assert len(sent) == 40
    assert len(points["receive"]) == len(heard)
    joined = [
        (data, sent[flow]) for data, flow in zip(heard, points["receive"], strict=True) if flow
    ]
    assert all(data.startswith(b"%d:" % number) for data, number in joined)
    assert len(joined) == (too_long[0] if too_long else 40)
    assert flows.stats().get("not synchronised", 0) == len(heard) - len(joined)
