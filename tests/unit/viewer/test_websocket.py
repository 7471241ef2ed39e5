"""Conversations: messages, control frames, goodbyes, mistakes."""

from __future__ import annotations

import pytest

from stretto.base.errors import LocalProtocolError
from stretto.viewer.websocket import Closed, Data, Event, Pong, WebSocket
from stretto.viewer.websocket_frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT
from tests.support.websocket_client import client_frame, server_frames


@pytest.fixture
def websocket() -> WebSocket:
    return WebSocket(max_message_bytes=1000)


def said(websocket: WebSocket) -> list[tuple[int, bytes]]:
    return server_frames(websocket.take_output())


def text_of(events: list[Event]) -> bytes:
    assert all(isinstance(event, Data) and event.text for event in events)
    return b"".join(event.payload for event in events if isinstance(event, Data))


def failed(websocket: WebSocket, data: bytes) -> int:
    """The code with which the conversation ended by the peer's mistake."""
    *_, closed = websocket.receive(data)
    assert isinstance(closed, Closed)
    assert not closed.by_peer
    ((opcode, payload),) = said(websocket)
    assert opcode == CLOSE
    assert int.from_bytes(payload[:2]) == closed.code
    assert payload[2:].decode() == closed.reason
    return closed.code


class TestMessages:
    def test_a_binary_message(self, websocket: WebSocket) -> None:
        (event,) = websocket.receive(client_frame(BINARY, b"\x00\xff"))
        assert isinstance(event, Data)
        assert (event.payload, event.text, event.finished) == (b"\x00\xff", False, True)

    def test_fragments_with_control_frames_between(self, websocket: WebSocket) -> None:
        events = websocket.receive(
            client_frame(TEXT, b"Hel", final=False)
            + client_frame(PING, b"?")
            + client_frame(CONTINUATION, b"", final=False)
            + client_frame(PONG, b"!")
            + client_frame(CONTINUATION, b"lo")
        )
        assert [type(event) for event in events] == [Data, Pong, Data]
        first, pong, last = events
        assert isinstance(pong, Pong)
        assert pong.payload == b"!"
        assert text_of([first, last]) == b"Hello"
        assert isinstance(last, Data)
        assert last.finished
        assert said(websocket) == [(PONG, b"?")]

    def test_an_empty_message_is_one(self, websocket: WebSocket) -> None:
        (event,) = websocket.receive(client_frame(TEXT))
        assert isinstance(event, Data)
        assert (event.payload, event.finished) == (b"", True)

    def test_ours(self, websocket: WebSocket) -> None:
        websocket.send_text("ü")
        websocket.send_binary(b"\x01")
        websocket.ping(b"p")
        assert said(websocket) == [(TEXT, "ü".encode()), (BINARY, b"\x01"), (PING, b"p")]
        assert websocket.take_output() == b""

    def test_a_ping_too_long(self, websocket: WebSocket) -> None:
        with pytest.raises(LocalProtocolError, match="126 bytes"):
            websocket.ping(bytes(126))


class TestMistakes:
    @pytest.mark.parametrize(
        "frames",
        [
            pytest.param(client_frame(CONTINUATION, b"x"), id="nothing to continue"),
            pytest.param(
                client_frame(BINARY, b"x") + client_frame(CONTINUATION, b"x"),
                id="continued after its end",
            ),
            pytest.param(
                client_frame(TEXT, b"x", final=False) + client_frame(BINARY, b"x"),
                id="a message inside another",
            ),
            pytest.param(client_frame(CLOSE, b"\x03"), id="half a close code"),
        ],
    )
    def test_order(self, websocket: WebSocket, frames: bytes) -> None:
        assert failed(websocket, frames) == 1002

    @pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535])
    def test_close_codes_that_may_not_be_sent(self, websocket: WebSocket, code: int) -> None:
        assert failed(websocket, client_frame(CLOSE, code.to_bytes(2))) == 1002

    @pytest.mark.parametrize(
        "text",
        [
            b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",  # a surrogate
            b"\xf4\x90\x80\x80",  # beyond Unicode
            b"\xc0\xaf",  # overlong
            b"\xce",  # ends inside a character
            b"\xff",
        ],
    )
    def test_text_that_is_none(self, websocket: WebSocket, text: bytes) -> None:
        assert failed(websocket, client_frame(TEXT, text)) == 1007

    def test_text_is_refused_as_soon_as_it_is_none(self, websocket: WebSocket) -> None:
        assert failed(websocket, client_frame(TEXT, b"\xf4\x90", final=False)) == 1007

    def test_characters_may_lie_across_fragments(self, websocket: WebSocket) -> None:
        events = websocket.receive(client_frame(TEXT, b"\xe2\x82", final=False))
        events += websocket.receive(client_frame(CONTINUATION, b"\xac"))
        assert text_of(events).decode() == "€"

    def test_an_unfinished_character_is_of_its_message(self, websocket: WebSocket) -> None:
        websocket.receive(client_frame(BINARY, b"\xe2\x82"))
        assert text_of(websocket.receive(client_frame(TEXT, b"x"))) == b"x"

    def test_a_close_reason_that_is_no_text(self, websocket: WebSocket) -> None:
        assert failed(websocket, client_frame(CLOSE, b"\x03\xe8\xff")) == 1007

    def test_a_message_too_big_is_refused_by_its_header(self, websocket: WebSocket) -> None:
        websocket.receive(client_frame(BINARY, bytes(1000)))
        assert failed(websocket, client_frame(BINARY, bytes(1001))[:10]) == 1009

    def test_fragments_add_up(self, websocket: WebSocket) -> None:
        websocket.receive(client_frame(BINARY, bytes(600), final=False))
        assert failed(websocket, client_frame(CONTINUATION, bytes(401), final=False)) == 1009

    def test_what_came_before_counts(self, websocket: WebSocket) -> None:
        first, closed = websocket.receive(client_frame(BINARY, b"good") + b"\xff\xff")
        assert isinstance(first, Data)
        assert isinstance(closed, Closed)

    def test_after_it_nothing_comes_and_nothing_goes(self, websocket: WebSocket) -> None:
        failed(websocket, b"\xff\xff")
        assert websocket.receive(client_frame(BINARY, b"more") + client_frame(PING)) == []
        websocket.close()
        assert websocket.take_output() == b""
        with pytest.raises(LocalProtocolError, match="closed"):
            websocket.send_binary(b"x")


class TestGoodbye:
    def test_theirs_is_answered(self, websocket: WebSocket) -> None:
        (closed,) = websocket.receive(client_frame(CLOSE, (1001).to_bytes(2) + b"leaving"))
        assert isinstance(closed, Closed)
        assert (closed.code, closed.reason, closed.by_peer) == (1001, "leaving", True)
        assert said(websocket) == [(CLOSE, (1001).to_bytes(2))]
        assert websocket.closing

    def test_theirs_without_a_code(self, websocket: WebSocket) -> None:
        (closed,) = websocket.receive(client_frame(CLOSE))
        assert isinstance(closed, Closed)
        assert (closed.code, closed.reason) == (1005, "")
        assert said(websocket) == [(CLOSE, b"")]

    @pytest.mark.parametrize("code", [1000, 1003, 1007, 1011, 1014, 3000, 4999])
    def test_codes_that_may_be_sent(self, websocket: WebSocket, code: int) -> None:
        (closed,) = websocket.receive(client_frame(CLOSE, code.to_bytes(2)))
        assert isinstance(closed, Closed)
        assert (closed.code, closed.by_peer) == (code, True)

    def test_ours_waits_for_theirs(self, websocket: WebSocket) -> None:
        websocket.close(1001, "the service hung up")
        assert said(websocket) == [(CLOSE, (1001).to_bytes(2) + b"the service hung up")]
        assert websocket.closing
        # What crosses our goodbye isn't ours any more, and gets no answer.
        assert websocket.receive(client_frame(BINARY, b"late") + client_frame(PING)) == []
        (closed,) = websocket.receive(client_frame(CLOSE, (1001).to_bytes(2)))
        assert isinstance(closed, Closed)
        assert closed.by_peer
        assert websocket.take_output() == b""

    def test_ours_is_said_once(self, websocket: WebSocket) -> None:
        websocket.close()
        websocket.close(1011)
        assert said(websocket) == [(CLOSE, (1000).to_bytes(2))]

    def test_a_long_reason_is_cut_between_characters(self, websocket: WebSocket) -> None:
        websocket.close(1011, "é" * 100)
        ((_, payload),) = said(websocket)
        assert len(payload) <= 125
        assert payload[2:].decode() == "é" * 61
