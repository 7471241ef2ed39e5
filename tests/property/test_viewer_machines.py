"""However bytes are cut, HTTP and WebSocket mean the same; no bytes of a peer do harm."""

from __future__ import annotations

import contextlib
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from stretto.base.errors import StrettoError
from stretto.viewer.http_request import HttpError, Request, RequestReader
from stretto.viewer.websocket import Closed, Data, Event, WebSocket
from stretto.viewer.websocket_frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT
from tests.support.websocket_client import client_frame, server_frames

cuts = st.lists(st.integers(1, 40), min_size=1, max_size=20)
codes = st.sampled_from([b"", b"\x03", b"\x03\xe8", b"\x03\xe8bye", b"\x03\xed", b"\x0f\xa0\xff"])
control_frames = st.one_of(
    st.builds(client_frame, st.sampled_from([PING, PONG]), st.binary(max_size=125)),
)
data_frames = st.builds(
    client_frame,
    st.sampled_from([TEXT, BINARY, CONTINUATION]),
    st.one_of(st.binary(max_size=300), st.text(max_size=40).map(str.encode)),
    final=st.booleans(),
)
whole_messages = st.one_of(
    st.builds(client_frame, st.just(BINARY), st.binary(max_size=300)),
    st.builds(client_frame, st.just(TEXT), st.text(max_size=80).map(str.encode)),
)
frames = st.one_of(
    whole_messages, control_frames, data_frames, st.builds(client_frame, st.just(CLOSE), codes)
)
streams = st.lists(st.one_of(frames, whole_messages, st.binary(max_size=20)), max_size=12)


def pieces(stream: bytes, sizes: list[int]) -> list[bytes]:
    cut, position = [], 0
    while position < len(stream):
        size = sizes[len(cut) % len(sizes)]
        cut.append(stream[position : position + size])
        position += size
    return cut


def meaning(events: list[Event]) -> list[object]:
    """What a conversation said, however its messages were cut."""
    said: list[object] = []
    for kind, group in groupby(events, type):
        if kind is Data:
            said += message_pieces([event for event in group if isinstance(event, Data)])
        else:
            said += [
                (e.code, e.reason, e.by_peer) if isinstance(e, Closed) else e.payload
                for e in group
                if not isinstance(e, Data)
            ]
    return said


def message_pieces(events: list[Data]) -> list[tuple[bool, bytes, bool]]:
    """Text or binary, payload, and whether it ended."""
    said, payload = [], b""
    for event in events:
        payload += event.payload
        if event.finished or event is events[-1]:
            said.append((event.text, payload, event.finished))
            payload = b""
    return [part for part in said if part[1] or part[2]]


def converse(stream: bytes, sizes: list[int]) -> tuple[list[object], list[tuple[int, bytes]]]:
    websocket = WebSocket(max_message_bytes=500)
    events = [event for piece in pieces(stream, sizes) for event in websocket.receive(piece)]
    output = websocket.take_output()
    # Nobody makes us say more than they said, but for the words of a goodbye.
    assert len(output) <= len(stream) + 127
    return meaning(events), server_frames(output)


@given(streams, cuts)
def test_a_websocket_means_the_same_however_it_is_cut(parts: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(parts)
    whole, _ = converse(stream, [max(1, len(stream))])
    cut, _ = converse(stream, sizes)
    assert settled(cut) == settled(whole)
    assert converse(stream, sizes)[1] == converse(stream, [max(1, len(stream))])[1]


def settled(said: list[object]) -> list[object]:
    """Without the piece of a text that turned out to be none.

    It is refused as a whole if it comes as a whole, and from its first wrong byte on if it comes
    by and by.
    """
    if said and isinstance(said[-1], tuple) and said[-1][0] == 1007:
        *before, closed = said
        while before and isinstance(before[-1], tuple) and before[-1][0] is True:
            if before[-1][2]:
                break
            before.pop()
        return [*before, closed]
    return said


@given(st.lists(st.one_of(whole_messages, control_frames), max_size=12), cuts)
def test_good_messages_are_never_refused(parts: list[bytes], sizes: list[int]) -> None:
    said, _ = converse(b"".join(parts), sizes)
    assert len([part for part in said if isinstance(part, tuple)]) == sum(
        part[0] & 0x0F in (TEXT, BINARY) for part in parts
    )


@given(st.binary(max_size=400), cuts)
def test_garbage_is_no_harm(stream: bytes, sizes: list[int]) -> None:
    converse(stream, sizes)


heads = st.sampled_from(
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /a?b HTTP/1.0\r\n\r\n",
        b"\r\nPOST /status HTTP/1.1\r\nContent-Length: 0\r\nA: b\r\nA: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nBad : x\r\n\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\r\n\r\n",
    ]
)


def ask(stream: bytes, sizes: list[int]) -> list[object]:
    reader, asked = RequestReader(), list[object]()
    try:
        for piece in pieces(stream, sizes):
            reader.receive(piece)
            while (request := reader.next_request()) is not None:
                asked.append(told(request))
    except HttpError as error:
        asked.append((error.status, str(error)))
    else:
        asked.append(reader.take_rest())
    return asked


def told(request: Request) -> object:
    return request.method, request.path, request.fields, request.keep_alive


@given(st.lists(st.one_of(heads, st.binary(max_size=20)), max_size=6), cuts)
def test_requests_mean_the_same_however_they_are_cut(parts: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(parts)
    assert ask(stream, sizes) == ask(stream, [max(1, len(stream))])


@given(st.text(), st.text())
def test_any_field_is_parsed_or_refused(name: str, value: str) -> None:
    reader = RequestReader()
    reader.receive(f"GET / HTTP/1.1\r\n{name}: {value}\r\n\r\n".encode())
    with contextlib.suppress(StrettoError):
        reader.next_request()
