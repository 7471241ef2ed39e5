"""Tests of FIDL flow arrows and recorded bodies in the real trace processor."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from typing import Any

import pytest

from fidl_support import bank as fidl_bank
from fidl_support.arrows import check
from fidl_support.flow import Flow, ask, flow, padding
from fidl_support.talk import ZX
from stretto import flows
from stretto_fidl.bindings import ChannelEnd, channel, load
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import AsyncClient, AsyncServer, Client, Server
from tests.support.oracle import Oracle, missing
from tests.support.recorded_events import record
from tests.support.traced_greeter import flows_installed

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

ARROWS = """
select o.name, extract_arg(o.arg_set_id, 'debug.role'), extract_arg(o.arg_set_id, 'debug.kind'),
       i.name, extract_arg(i.arg_set_id, 'debug.role'), extract_arg(i.arg_set_id, 'debug.kind')
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in order by o.ts, i.ts
"""


def serve(end: ChannelEnd, handler: Any = None) -> threading.Thread:
    thread = threading.Thread(target=Server(flow.Flow, end, handler or Flow()).serve)
    thread.start()
    return thread


def test_call_has_three_arrows_and_none_begins_at_the_end_of_the_call() -> None:
    """The trace processor draws each arrow from the start of a slice.

    An arrow from the end of the call's slice would therefore be drawn from the wrong time.
    """
    near, far = channel()
    with flows_installed(), record() as recorded:
        serving = serve(far)
        with Client(flow.Flow, near) as client:
            ask(client, 1)
        serving.join()
    judge = Oracle(recorded.trace)
    assert judge.errors() == []
    assert judge.query(ARROWS) == [
        ("Ask", "send", "request", "Ask", "receive", "request"),
        ("Ask", "receive", "request", "Ask", "send", "reply"),
        ("Ask", "send", "reply", "Ask", "receive", "reply"),
    ]
    assert judge.query("select count() from slice where category = 'test.fidl'") == [(4,)]


def test_calls_of_eight_threads_have_unique_transaction_ids() -> None:
    near, far = channel()
    calls = 100
    with flows_installed():
        serving = serve(far)
        with Client(flow.Flow, near) as client, record() as recorded:

            def call(first: int) -> None:
                for number in range(first, first + calls):
                    ask(client, number)

            threads = [threading.Thread(target=call, args=(n * 1000,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            client.close()
            serving.join()
        assert flows.stats() == {}
    points = check(recorded.trace, 3 * 8 * calls)
    assert len(points) == 4 * 8 * calls
    # All transaction ids are in the range that the transport assigns, and each is used once.
    numbers = Counter(txid for _, _, txid, _ in points)
    assert len(numbers) == 8 * calls
    assert all(txid >> 31 == 1 and seen == 4 for txid, seen in numbers.items())


@pytest.mark.parametrize("blocking", ["client", "server"])
def test_calls_between_a_blocking_end_and_an_asyncio_end_have_all_arrows(blocking: str) -> None:
    near, far = channel()

    def call() -> None:
        with Client(flow.Flow, near) as client:
            for number in range(1, 20):
                client.Tell(padding=padding(number))
                ask(client, number)

    async def call_async() -> None:
        async with AsyncClient(flow.Flow, near) as client:
            for number in range(1, 20):
                await client.Tell(padding=padding(number))
                await client.Later(number=number)

    async def serve_async() -> None:
        await AsyncServer(flow.Flow, far, Flow()).serve()

    with flows_installed(), record() as recorded:
        if blocking == "client":
            caller = threading.Thread(target=call)
            caller.start()
            asyncio.run(serve_async())
            caller.join()
        else:
            serving = serve(far)
            asyncio.run(call_async())
            serving.join()
    assert len(check(recorded.trace, 19 * 4)) == 19 * 6


def test_messages_over_a_stream_socket_have_all_arrows() -> None:
    """A stream socket has no message boundaries, so each message is sent in a frame with its
    length.
    """
    near, far = (
        ChannelEnd(end.detach(), used=False)
        for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    )
    with flows_installed():
        with record() as recorded:
            serving = serve(far)
            with Client(flow.Flow, near) as client:
                for number in range(1, 20):
                    client.Tell(padding=padding(number * 100))
                    ask(client, number)
            serving.join()
        assert flows.stats() == {}
    assert len(check(recorded.trace, 19 * 4)) == 19 * 6


POST = """
library test.post;
using zx;
closed protocol Post {
    strict Deliver(resource struct { end zx.Handle:CHANNEL; });
};
"""
post: Any = load(compile_sources({"post.fidl": POST}, dependencies={"zx.fidl": ZX}))


class Post:
    """Handles the protocol Post, and keeps the channel end from the message."""

    def __init__(self) -> None:
        self.end: Any = None

    def Deliver(self, request: Any) -> None:  # noqa: N802
        self.end = request.end


def handed_over(end: ChannelEnd) -> ChannelEnd:
    """Send a channel end over another channel; return the received end."""
    near, far = channel()
    receiver = Post()
    with Client(post.Post, near) as client:
        client.Deliver(end=end)
    Server(post.Post, far, receiver).serve()
    assert receiver.end.used
    return receiver.end  # type: ignore[no-any-return]


class TestChannelEndsSentOverChannels:
    """Tests of channel ends that are sent over another channel.

    The receiver of an end can't count the messages that were sent through the end before. Later
    messages have correct arrows or none, and messages without arrows are counted. One-way messages
    have arrows again after the next two-way call.
    """

    def test_unused_client_end_received_over_a_channel_has_no_arrows_before_a_call(self) -> None:
        near, far = channel()
        with flows_installed(), record() as recorded:
            serving = serve(far)
            self.converse(handed_over(near))
            serving.join()
            assert flows.stats() == {"not synchronised": 2}
        self.check(recorded.trace, silent=(1, 2))

    def test_unused_server_end_received_over_a_channel_has_no_arrows_before_a_call(self) -> None:
        near, far = channel()
        with flows_installed(), record() as recorded:
            serving = serve(handed_over(far))
            self.converse(near)
            serving.join()
            assert flows.stats() == {"not synchronised": 2}
        self.check(recorded.trace, silent=(1, 2))

    @pytest.mark.parametrize("calls_first", [False, True])
    def test_used_client_end_received_over_a_channel_has_no_arrows_before_a_call(
        self, *, calls_first: bool
    ) -> None:
        near, far = channel()
        with flows_installed():
            serving = serve(far)
            first = Client(flow.Flow, near)
            for number in range(100, 105):
                first.Tell(padding=padding(number))
            if calls_first:
                ask(first, 7)
            with record() as recorded:
                self.converse(handed_over(first.detach()))
                serving.join()
            assert flows.stats() == {"not synchronised": 2}
        self.check(recorded.trace, silent=(1, 2))

    @staticmethod
    def converse(end: ChannelEnd) -> None:
        with Client(flow.Flow, end) as client:
            client.Tell(padding=padding(1))
            client.Tell(padding=padding(2))
            ask(client, 1)
            client.Tell(padding=padding(3))
            ask(client, 2)
            client.Tell(padding=padding(4))

    @staticmethod
    def check(trace: bytes, silent: tuple[int, ...]) -> None:
        judge = Oracle(trace)
        assert judge.errors() == []
        # A message has 16 bytes of header, 16 bytes of vector, and 8 bytes for each unit of its
        # padding.
        sizes = {16 + 16 + 8 * number: number for number in range(1, 5)}
        rows = judge.query(
            "select extract_arg(o.arg_set_id, 'debug.bytes'),"
            " extract_arg(i.arg_set_id, 'debug.bytes'), o.name, i.name"
            " from flow join slice o on o.id = slice_out join slice i on i.id = slice_in"
        )
        with_arrows = sorted(
            (sizes[a], sizes[b]) for a, b, out, into in rows if out == into == "Tell"
        )
        assert with_arrows == [(n, n) for n in range(1, 5) if n not in silent]
        assert sum(out == into == "Ask" for *_, out, into in rows) == 6
        assert len(rows) == 6 + len(with_arrows)


def test_bodies_are_recorded_without_sensitive_values() -> None:
    with flows_installed(bodies=True), record() as recorded:
        fidl_bank.call_all_methods(load(fidl_bank.IR))
    judge = Oracle(recorded.trace)
    assert judge.errors() == []

    def value(role: str, key: str) -> list[tuple[Any, ...]]:
        return judge.query(
            f"select distinct extract_arg(arg_set_id, 'debug.body.{key}') from slice"
            f" where extract_arg(arg_set_id, 'debug.role') = '{role}'"
            f" and extract_arg(arg_set_id, 'debug.body.{key}') is not null"
        )

    for role in ("send", "receive"):
        assert value(role, "user") == [("me",)]
        assert value(role, "password") == [("<sensitive>",)]
        assert value(role, "response.token") == [("<sensitive>",)]
        assert value(role, "how.cash") == [(7,)]
    found = judge.query(
        "select count() from args where string_value like '%hunter%' or string_value like '%8000%'"
    )
    assert found == [(0,)]
    assert fidl_bank.SECRET.encode() not in recorded.trace
