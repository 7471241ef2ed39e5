"""Tests of the blocking server: immediate and deferred replies, unknown and invalid messages."""

from __future__ import annotations

import socket

import pytest

from fidl_support.talk import Serving, Talker, conversation, load_talk, talk
from stretto_fidl.bindings import Event, channel
from stretto_fidl.codec import TransactionHeader, decode_epitaph, decode_header
from stretto_fidl.errors import FidlError
from stretto_fidl.ordinals import EPITAPH_ORDINAL
from stretto_fidl.transport import Client, ClosedError, Deferred, PeerError, Server

ORDINAL = {method.name: method.ordinal for method in talk.Talk.METHODS}
INTERNAL, NOT_SUPPORTED, INVALID_ARGS = -1, -2, -10


class Peer:
    """A client socket, on which the test writes the messages itself, and a server.

    Args:
        openness: The openness of the server's protocol.
    """

    def __init__(self, openness: str = "open", **options: int) -> None:
        names = load_talk()
        names.Talk.OPENNESS = openness
        self.handler = Talker(names)
        near, far = channel()
        self.socket = socket.socket(fileno=near.detach())
        self.socket.settimeout(30)
        self.serving = Serving(names.Talk, far, self.handler, **options)

    def send(self, txid: int, name: str | int, body: bytes = b"", *, flexible=False) -> None:
        ordinal = name if isinstance(name, int) else ORDINAL[name]
        self.socket.send(TransactionHeader(txid, ordinal, flexible).encode() + body)

    def epitaph(self) -> int | None:
        """Return the epitaph status with which the server ended, or None."""
        last = b""
        while data := self.socket.recv(65536):
            last = data
        self.serving.join()
        return decode_epitaph(last) if last else None

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.socket.close()
        self.serving.join()


@pytest.mark.parametrize(
    ("openness", "flexible", "two_way", "tolerated"),
    [
        ("open", False, False, False),
        ("open", False, True, False),
        ("open", True, False, True),
        ("open", True, True, True),
        ("ajar", True, False, True),
        ("ajar", True, True, False),
        ("ajar", False, False, False),
        ("closed", True, False, False),
        ("closed", True, True, False),
        ("closed", False, True, False),
    ],
)
def test_unknown_methods_follow_the_openness_of_the_protocol(
    openness: str, flexible: bool, two_way: bool, tolerated: bool
) -> None:
    with Peer(openness) as peer:
        peer.send(5 if two_way else 0, 99, flexible=flexible)
        if not tolerated:
            assert peer.epitaph() == NOT_SUPPORTED
            assert isinstance(peer.serving.error, PeerError)
            assert peer.handler.unknown == []
            return
        if two_way:
            reply = peer.socket.recv(65536)
            assert decode_header(reply) == TransactionHeader(5, 99, True)
            assert reply[16:] == bytes([3, 0, 0, 0, 0, 0, 0, 0, 0xFE, 255, 255, 255, 0, 0, 1, 0])
        peer.send(6, "Echo", bytes(8))
        assert decode_header(peer.socket.recv(65536)).txid == 6
        assert peer.handler.unknown == [99]


def test_handles_of_unknown_messages_are_closed() -> None:
    with Peer() as peer:
        event = Event.create()
        header = TransactionHeader(0, 99, True).encode()
        socket.send_fds(peer.socket, [header], [event.fd])
        peer.send(6, "Echo", bytes(8))
        peer.socket.recv(65536)
        assert peer.handler.unknown == [99]


@pytest.mark.parametrize(
    "send",
    [
        lambda peer: peer.send(0, "Echo", bytes(8)),
        lambda peer: peer.send(3, "Fire", bytes(8)),
        lambda peer: peer.send(3, "Echo"),
        lambda peer: peer.send(3, "Echo", bytes(16)),
        lambda peer: peer.send(3, "Echo", b"\0\0\0\0padd"),
        lambda peer: peer.send(0, EPITAPH_ORDINAL, bytes(8)),
        lambda peer: peer.socket.send(b"short"),
        lambda peer: peer.socket.send(bytes(16)),
    ],
)
def test_malformed_messages_are_answered_with_an_epitaph(send) -> None:
    with Peer() as peer:
        send(peer)
        assert peer.epitaph() == INVALID_ARGS
        assert isinstance(peer.serving.error, PeerError)


def test_event_sent_to_a_server_is_refused() -> None:
    with Peer() as peer:
        peer.send(0, "OnTick", bytes(8))
        assert peer.epitaph() == NOT_SUPPORTED


def test_exception_of_a_handler_ends_the_channel() -> None:
    with conversation() as (client, there):
        with pytest.raises(ClosedError, match="INTERNAL"):
            client.Crash()
        there.join()
        assert isinstance(there.error, ZeroDivisionError)


@pytest.mark.parametrize("answer", ["nonsense", None, 5])
def test_handler_that_returns_a_wrong_type_ends_the_channel(answer) -> None:
    class Wrong(Talker):
        def Echo(self, request):  # noqa: N802
            return answer

    with conversation(Wrong()) as (client, there):
        with pytest.raises(ClosedError, match="INTERNAL"):
            client.Echo(number=1)
        there.join()
        assert there.error is not None


def test_error_reply_of_a_method_without_errors_ends_the_channel() -> None:
    class Wrong(Talker):
        Echo = Talker.Divide

    with conversation(Wrong()) as (client, there):
        with pytest.raises(ClosedError, match="INTERNAL"):
            client.Echo(number=1)
        there.join()
        assert isinstance(there.error, AttributeError)


def test_deferred_replies_may_be_sent_in_any_order() -> None:
    with Peer() as peer:
        for txid in (1, 2, 3):
            peer.send(txid, "Later", txid.to_bytes(8, "little"))
        peer.send(4, "Echo", bytes(8))
        assert decode_header(peer.socket.recv(65536)).txid == 4
        peer.handler.answer_later()
        replies = [peer.socket.recv(65536) for _ in range(3)]
        assert [decode_header(reply).txid for reply in replies] == [3, 2, 1]
        assert [reply[16] for reply in replies] == [3, 2, 1]


def test_deferred_reply_is_sent_once_even_if_resolved_before_the_handler_returns() -> None:
    class Early(Talker):
        def Later(self, request):  # noqa: N802
            deferred = Deferred()
            deferred.resolve(self.names.TalkLaterResponse(number=request.number))
            with pytest.raises(FidlError):
                deferred.reject(1)
            return deferred

    with conversation(Early()) as (client, _):
        assert client.Later(number=3).number == 3


def test_invalid_deferred_reply_ends_the_channel() -> None:
    with Peer() as peer:
        peer.send(1, "Later", bytes(8))
        peer.send(2, "Echo", bytes(8))
        peer.socket.recv(65536)
        _, deferred = peer.handler.later.pop()
        with pytest.raises(FidlError):
            deferred.reject(5)  # the method Later declares no error type
        assert peer.epitaph() == INTERNAL
        assert isinstance(peer.serving.error, FidlError)


def test_number_of_unanswered_calls_is_bounded() -> None:
    with Peer(in_flight=2) as peer:
        for txid in range(1, 7):
            peer.send(txid, "Later", bytes(8))
        for _ in range(6):
            peer.handler.arrived.acquire(timeout=30)
            assert len(peer.handler.later) <= 3
            _, deferred = peer.handler.later.pop(0)
            deferred.resolve(talk.TalkLaterResponse(number=1))
            assert decode_header(peer.socket.recv(65536)).ordinal == ORDINAL["Later"]


def test_handler_without_all_methods_is_refused() -> None:
    _, far = channel()
    with pytest.raises(FidlError, match="lacks Echo, Divide"):
        Server(talk.Talk, far, object())


def test_close_sends_its_status_as_an_epitaph() -> None:
    with conversation() as (client, there):
        there.server.close(-28)
        with pytest.raises(ClosedError, match="UNAVAILABLE"):
            client.Echo(number=1)
        there.join()
        assert there.error is None
        with pytest.raises(ClosedError):
            there.server.OnTick(number=1)


def test_client_that_disconnects_ends_the_server_without_error() -> None:
    near, far = channel()
    there = Serving(talk.Talk, far, Talker())
    with Client(talk.Talk, near) as client:
        client.Fire(number=1)
    there.join()
    assert there.error is None
    assert there.handler.fired == [1]
