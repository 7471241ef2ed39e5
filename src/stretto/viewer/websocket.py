"""The server's end of a WebSocket, after the handshake: bytes in, events and bytes out.

    receive(bytes) -> events          what the peer said: Data, Pong, Closed
    send_…(), close()                 what we say
    take_output() -> bytes            what has to go to the peer now

    OPEN --close()--> CLOSING --peer's close frame--> CLOSED
      +---peer's close frame, or its mistake------------^

Rules
- Messages come in pieces, and are never collected: the only thing that grows with them is a
  counter, which is limited.
- A ping is answered at once. The answer is shorter than the ping: output never outgrows input.
- After `Closed` nothing comes out of `receive`, and nothing more is sent: the connection ends when
  the output is out. After our own `close` only the peer's close frame counts.

Source: RFC 6455, sections 5.4, 5.5, 7, 8.1.
"""

from __future__ import annotations

import codecs
from struct import Struct

from stretto.base.errors import LocalProtocolError
from stretto.viewer.websocket_frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    DATA_OPCODES,
    MAX_CONTROL_BYTES,
    PING,
    PONG,
    PROTOCOL_ERROR,
    TEXT,
    FrameReader,
    Piece,
    WebSocketError,
    encode_frame,
)

MAX_MESSAGE_BYTES = 1 << 20

NORMAL = 1000
GOING_AWAY = 1001
UNSUPPORTED_DATA = 1003
NO_CODE = 1005
"""Never on the wire: the peer's close frame had no code."""
INVALID_DATA = 1007
POLICY_VIOLATION = 1008
TOO_BIG = 1009
INTERNAL_ERROR = 1011

_CODE = Struct(">H")
_OWN_CODES = range(3000, 5000)
_KNOWN_CODES = frozenset((*range(1000, 1004), *range(1007, 1015)))


class Data:
    """A piece of a message.

    Attributes:
        payload: Of a text message: whole UTF-8, though characters may lie across pieces.
        text: It is a text message, else a binary one.
        finished: The message ends here.
    """

    __slots__ = ("finished", "payload", "text")

    def __init__(self, payload: bytes, text: bool, finished: bool) -> None:
        self.payload = payload
        self.text = text
        self.finished = finished


class Pong:
    """An answer to a ping of ours, or none."""

    __slots__ = ("payload",)

    def __init__(self, payload: bytes) -> None:
        self.payload = payload


class Closed:
    """The conversation has ended; the last event.

    Attributes:
        code: The one that ended it: the peer's, or ours after a mistake of the peer.
        reason: In words; may be empty.
        by_peer: The peer said goodbye, and sends nothing more.
    """

    __slots__ = ("by_peer", "code", "reason")

    def __init__(self, code: int, reason: str, by_peer: bool) -> None:
        self.code = code
        self.reason = reason
        self.by_peer = by_peer


Event = Data | Pong | Closed


class WebSocket:
    """See above.

    Args:
        max_message_bytes: A longer message ends the conversation.
    """

    __slots__ = ("_closing", "_ended", "_max_message_bytes", "_message", "_message_bytes",
                 "_output", "_reader", "_utf8")  # fmt: skip

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_message_bytes = max_message_bytes
        self._reader = FrameReader()
        self._output = bytearray()
        self._message = 0  # TEXT or BINARY while one is being received
        self._message_bytes = 0
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._closing = False
        self._ended = False

    @property
    def closing(self) -> bool:
        """We have said goodbye: nothing more can be sent."""
        return self._closing or self._ended

    def take_output(self) -> bytes:
        """The bytes to send, once."""
        output = bytes(self._output)
        self._output.clear()
        return output

    # --- what we say

    def send_binary(self, payload: bytes) -> None:
        """Send a binary message.

        Raises:
            LocalProtocolError: The conversation is over.
        """
        self._send_message(BINARY, payload)

    def send_text(self, text: str) -> None:
        """Send a text message.

        Raises:
            LocalProtocolError: The conversation is over.
        """
        self._send_message(TEXT, text.encode())

    def ping(self, payload: bytes = b"") -> None:
        """Ask for a `Pong` with the same payload of at most 125 bytes.

        Raises:
            LocalProtocolError: The conversation is over, or the payload too long.
        """
        if len(payload) > MAX_CONTROL_BYTES:
            raise LocalProtocolError(f"a ping of {len(payload)} bytes: at most 125 are allowed")
        self._send_message(PING, payload)

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Say goodbye. The peer's answer is awaited: see `Closed`. Harmless when said already.

        Args:
            code: Why.
            reason: In words; cut off where a close frame ends.
        """
        if self.closing:
            return
        self._closing = True
        cut = reason.encode()[: MAX_CONTROL_BYTES - _CODE.size]
        cut = cut.decode(errors="ignore").encode()
        self._output += encode_frame(CLOSE, _CODE.pack(code) + cut)

    def _send_message(self, opcode: int, payload: bytes) -> None:
        if self.closing:
            raise LocalProtocolError("the WebSocket is closed: nothing can be sent any more")
        self._output += encode_frame(opcode, payload)

    # --- what the peer says

    def receive(self, data: bytes | memoryview) -> list[Event]:
        """Bytes came. The events that follow from them."""
        events: list[Event] = []
        if not self._ended:
            self._reader.receive(data)
        try:
            while not self._ended and (piece := self._reader.next_piece()) is not None:
                self._handle(piece, events)
        except WebSocketError as error:
            self.close(error.code, str(error))
            self._ended = True
            events.append(Closed(error.code, str(error), by_peer=False))
        return events

    def _handle(self, piece: Piece, events: list[Event]) -> None:
        if piece.opcode in DATA_OPCODES:
            self._on_data(piece, events)
        elif piece.opcode == CLOSE:
            self._on_close(piece.payload, events)
        elif piece.opcode == PONG:
            events.append(Pong(piece.payload))
        elif not self._closing:
            self._output += encode_frame(PONG, piece.payload)

    def _on_data(self, piece: Piece, events: list[Event]) -> None:
        if piece.starts:
            self._begin_frame(piece)
        finished = piece.final and piece.ends
        text = self._message == TEXT
        if text:
            self._check_text(piece.payload, finished)
        if finished:
            self._message = 0
        if (piece.payload or finished) and not self._closing:
            events.append(Data(piece.payload, text, finished))

    def _begin_frame(self, piece: Piece) -> None:
        if piece.opcode == CONTINUATION:
            if not self._message:
                raise WebSocketError(PROTOCOL_ERROR, "there is no message to continue")
        elif self._message:
            raise WebSocketError(PROTOCOL_ERROR, "a message began inside another one")
        else:
            self._message = piece.opcode
            self._message_bytes = 0
        self._message_bytes += piece.announced
        if self._message_bytes > self._max_message_bytes:
            raise WebSocketError(
                TOO_BIG, f"a message may have at most {self._max_message_bytes} bytes"
            )

    def _check_text(self, payload: bytes, finished: bool) -> None:
        try:
            self._utf8.decode(payload, finished)
        except UnicodeDecodeError:
            raise WebSocketError(INVALID_DATA, "a text message isn't UTF-8") from None

    def _on_close(self, payload: bytes, events: list[Event]) -> None:
        code, reason = _parse_close(payload)
        if not self._closing:
            self._output += encode_frame(CLOSE, payload[: _CODE.size])
        self._ended = True
        events.append(Closed(code, reason, by_peer=True))


def _parse_close(payload: bytes) -> tuple[int, str]:
    """Code and reason of a close frame's payload.

    Raises:
        WebSocketError: It's none.
    """
    if not payload:
        return NO_CODE, ""
    if len(payload) < _CODE.size:
        raise WebSocketError(PROTOCOL_ERROR, "half a close code")
    (code,) = _CODE.unpack_from(payload)
    if code not in _KNOWN_CODES and code not in _OWN_CODES:
        raise WebSocketError(PROTOCOL_ERROR, f"no close frame may carry the code {code}")
    try:
        return code, payload[_CODE.size :].decode()
    except UnicodeDecodeError:
        raise WebSocketError(INVALID_DATA, "the reason of a close frame isn't UTF-8") from None
