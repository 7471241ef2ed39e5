"""Tests of the blocking client: calls, concurrent callers, events, and closing."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fidl_support.talk import Talker, conversation, load_talk, serving, talk
from stretto_fidl.bindings import Vmo, channel
from stretto_fidl.codec import TransactionHeader, WireError, decode_header, encode_epitaph
from stretto_fidl.codec.wire_error import TOO_FEW_BYTES_IN_PRIMARY_OBJECT
from stretto_fidl.transport import (
    CallTimeoutError,
    Client,
    ClosedError,
    DomainError,
    PeerError,
    UnknownMethodError,
)
from stretto_fidl.transport.conversation import ASSIGNED

ORDINAL = {method.name: method.ordinal for method in talk.Talk.METHODS}


class Peer:
    """A connected client, and the server's socket, on which the test writes the replies itself."""

    def __init__(self, **options) -> None:
        near, far = channel()
        self.socket = socket.socket(fileno=far.detach())
        self.socket.settimeout(30)
        self.client = Client(talk.Talk, near, **options)

    def request(self) -> TransactionHeader:
        return decode_header(self.socket.recv(65536))

    def send(self, txid: int, name: str | int, body: bytes = b"", *, flexible=False) -> None:
        ordinal = name if isinstance(name, int) else ORDINAL[name]
        self.socket.send(TransactionHeader(txid, ordinal, flexible).encode() + body)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.client.close()
        self.socket.close()


def number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def in_thread(call):
    """Run a function in a new thread; return the future of the function's result."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future


def test_blocking_calls_return_replies_and_errors() -> None:
    with conversation() as (client, there):
        assert client.Echo(number=3).number == 3
        assert client.Echo(talk.TalkEchoRequest(number=4)).number == 4
        assert client.call("Echo", talk.TalkEchoRequest(number=5)).number == 5
        assert client.Divide(a=7, b=2).quotient == 3
        with pytest.raises(DomainError) as caught:
            client.Divide(a=1, b=0)
        assert caught.value.value == 7
        client.Fire(number=6)
        client.Echo(number=0)
        assert there.handler.fired == [6]
        with pytest.raises(TypeError):
            client.Echo(talk.TalkEchoRequest(number=4), number=4)
        with pytest.raises(TypeError):
            client.Crash(number=4)


def test_handles_are_sent_and_returned() -> None:
    with conversation() as (client, _):
        sent = Vmo.create(b"content")
        back = client.Pass(what=sent).what
        assert not sent.is_open
        assert back.read() == b"content"
        back.close()


def test_each_of_eight_threads_gets_the_reply_to_its_call() -> None:
    def calls(client, first: int) -> list[int]:
        return [client.Echo(number=first + index).number for index in range(200)]

    with conversation() as (client, _), ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(calls, client, 1000 * worker) for worker in range(8)]
        for worker, future in enumerate(futures):
            assert future.result() == list(range(1000 * worker, 1000 * worker + 200))


def test_another_caller_reads_messages_when_the_reader_has_its_reply() -> None:
    with Peer() as peer:
        calls = [in_thread(lambda n=n: peer.client.Later(number=n).number) for n in range(4)]
        headers = [peer.request() for _ in calls]
        assert len({header.txid for header in headers}) == 4
        assert all(header.txid >= ASSIGNED for header in headers)
        # The first reply is for the thread that reads; then another thread must read.
        for index, header in enumerate(headers):
            peer.send(header.txid, "Later", number(index))
        assert sorted(call.result(30) for call in calls) == [0, 1, 2, 3]


def test_reply_to_a_timed_out_call_is_dropped() -> None:
    with Peer() as peer:
        with pytest.raises(CallTimeoutError):
            peer.client.call("Echo", talk.TalkEchoRequest(number=1), timeout=0)
        late = peer.request()
        call = in_thread(lambda: peer.client.Echo(number=2).number)
        header = peer.request()
        assert header.txid == late.txid + 1
        peer.send(late.txid, "Echo", number(1))
        peer.send(header.txid, "Echo", number(2))
        assert call.result(30) == 2


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda peer, txid: peer.send(txid, "Later", number(1)), "has the ordinal"),
        (lambda peer, txid: peer.send(txid + 1, "Echo", number(1)), "never was"),
        (lambda peer, txid: peer.send(7, "Echo", number(1)), "never was"),
        (lambda peer, txid: peer.send(0, "Echo", number(1)), "unknown ordinal"),
        (lambda peer, txid: peer.send(0, 99), "unknown ordinal"),
        (lambda peer, txid: peer.socket.send(b"short"), "5 bytes"),
    ],
)
def test_invalid_messages_of_a_server_end_the_channel(reply, message: str) -> None:
    with Peer() as peer:
        call = in_thread(lambda: peer.client.Echo(number=1))
        reply(peer, peer.request().txid)
        with pytest.raises(PeerError, match=message):
            call.result(30)
        with pytest.raises(PeerError):
            peer.client.Echo(number=2)
        assert peer.socket.recv(1) == b""


def test_undecodable_reply_ends_the_channel() -> None:
    with Peer() as peer:
        call, other = (in_thread(lambda: peer.client.Echo(number=1)) for _ in range(2))
        peer.request()
        peer.send(peer.request().txid, "Echo")
        causes = []
        for each in (call, other):
            with pytest.raises(PeerError, match="0 bytes") as caught:
                each.result(30)
            causes += [caught.value.__cause__]
        assert {type(cause) for cause in causes} == {WireError, type(None)}
        assert [cause.code for cause in causes if cause] == [TOO_FEW_BYTES_IN_PRIMARY_OBJECT]
        assert peer.socket.recv(1) == b""


def test_reply_of_an_unknown_method_is_an_error() -> None:
    with Peer() as peer:
        call = in_thread(lambda: peer.client.Divide(a=1, b=1))
        union = number(3) + (-2).to_bytes(4, "little", signed=True) + b"\0\0\1\0"
        peer.send(peer.request().txid, "Divide", union, flexible=True)
        with pytest.raises(UnknownMethodError):
            call.result(30)


def test_epitaph_of_the_server_ends_all_calls() -> None:
    with Peer() as peer:
        calls = [in_thread(lambda: peer.client.Echo(number=1)) for _ in range(3)]
        for _ in calls:
            peer.request()
        peer.socket.send(encode_epitaph(-30))
        for call in calls:
            with pytest.raises(ClosedError, match="ACCESS_DENIED") as caught:
                call.result(30)
            assert caught.value.status == -30
        with pytest.raises(ClosedError):
            peer.client.Fire(number=1)


@pytest.mark.parametrize("name", ["Echo", "Fire"])
def test_write_after_the_peer_has_closed_raises_its_epitaph(name: str) -> None:
    with Peer() as peer:
        peer.socket.send(encode_epitaph(-28))
        peer.socket.close()
        with pytest.raises(ClosedError, match="UNAVAILABLE"):
            getattr(peer.client, name)(number=1)


def test_close_wakes_waiting_callers() -> None:
    with Peer() as peer:
        calls = [in_thread(lambda: peer.client.Echo(number=1)) for _ in range(2)]
        events = in_thread(peer.client.next_event)
        for _ in calls:
            peer.request()
        peer.client.close()
        for call in calls:
            with pytest.raises(ClosedError, match="this end"):
                call.result(30)
        assert events.result(30) is None


def test_events_are_received_in_order() -> None:
    near, far = channel()
    with serving(far) as there, Client(talk.Talk, near) as client:
        there.server.OnTick(number=1)
        there.server.OnRest()
        there.server.OnTick(number=2)
        assert client.next_event().payload.number == 1
        assert client.next_event(30) == ("OnRest", ORDINAL["OnRest"], None)
        assert client.next_event().name == "OnTick"
        with pytest.raises(CallTimeoutError):
            client.next_event(0)
        there.server.OnTick(number=3)
        there.server.close()
        assert [event.payload.number for event in client.events()] == [3]


def test_events_are_queued_during_calls_up_to_the_limit() -> None:
    with Peer(event_limit=2) as peer:
        for index in range(5):
            peer.send(0, "OnTick", number(index))
        call = in_thread(lambda: peer.client.Echo(number=1).number)
        peer.send(peer.request().txid, "Echo", number(9))
        assert call.result(30) == 9
        assert [peer.client.next_event().payload.number for _ in range(2)] == [3, 4]
        assert peer.client.lost_events == 3


def test_event_wakes_its_waiter_while_another_thread_reads() -> None:
    with Peer() as peer:
        call = in_thread(lambda: peer.client.Echo(number=1).number)
        txid = peer.request().txid
        event = in_thread(peer.client.next_event)
        peer.send(0, "OnTick", number(5))
        assert event.result(30).payload.number == 5
        peer.send(txid, "Echo", number(1))
        assert call.result(30) == 1


def test_events_are_dispatched_to_an_object() -> None:
    class Events:
        def __init__(self) -> None:
            self.seen = []

        def OnTick(self, payload) -> None:  # noqa: N802
            self.seen.append(payload.number)

        def OnRest(self) -> None:  # noqa: N802
            self.seen.append("rest")

        def on_unknown_event(self, ordinal: int) -> None:
            self.seen.append(ordinal)

    handler = Events()
    with Peer() as peer:
        peer.send(0, "OnTick", number(1))
        peer.send(0, "OnRest", flexible=True)
        peer.send(0, 99, b"whatever", flexible=True)
        peer.socket.send(encode_epitaph(-1))
        with pytest.raises(ClosedError, match="INTERNAL"):
            peer.client.dispatch_events(handler)
    assert handler.seen == [1, "rest", 99]


def test_unknown_event_of_a_closed_protocol_ends_the_channel() -> None:
    names = load_talk(openness="closed")
    near, far = channel()
    with socket.socket(fileno=far.detach()) as peer, Client(names.Talk, near) as client:
        peer.send(TransactionHeader(0, 99, True).encode())
        with pytest.raises(PeerError):
            client.next_event()


def test_detached_channel_can_be_used_by_another_client() -> None:
    near, far = channel()
    assert not near.used
    with serving(far):
        first = Client(talk.Talk, near)
        first.Echo(number=1)
        end = first.detach()
        assert end.used
        with pytest.raises(ClosedError):
            first.Echo(number=2)
        with Client(talk.Talk, end) as second:
            assert second.Echo(number=3).number == 3


def test_event_handler_may_call_the_server() -> None:
    near, far = channel()
    with serving(far, Talker()) as there, Client(talk.Talk, near) as client:
        there.server.OnTick(number=4)

        class Events:
            def OnTick(self, payload) -> None:  # noqa: N802
                assert client.Echo(number=payload.number).number == 4
                client.close()

            def OnRest(self) -> None:  # noqa: N802
                raise AssertionError

        done = threading.Event()
        client.dispatch_events(Events())
        done.set()
        assert done.is_set()
