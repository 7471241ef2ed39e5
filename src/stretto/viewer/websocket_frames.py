"""WebSocket frames: how messages are cut out of a stream of bytes, and put into one.

     byte 0           byte 1                     then                  then
    +-----+---+------+------+---------+ +----------------------+ +---------+ +---------+
    | FIN |RSV|opcode| MASK | length  | | u16 or u64, if that  | | mask,   | | payload |
    |  1  | 3 |  4   |  1   |    7    | | length is 126 or 127 | | 4 bytes | |         |
    +-----+---+------+------+---------+ +----------------------+ +---------+ +---------+

Numbers are big-endian. A client masks its payloads (exclusive or with the four bytes, again and
again), a server doesn't.

Rules
- Data payloads come out in pieces, as their bytes come in: a frame may announce 2^63 bytes, and
  none are kept. Only headers and control frames (125 bytes at most) are collected.
- What a single frame can do wrong is found here, and ends the connection; what is wrong about
  their order is `websocket`'s.

Source: RFC 6455, section 5.
"""

from __future__ import annotations

from struct import Struct

from stretto.base.errors import RemoteProtocolError

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
DATA_OPCODES = frozenset((CONTINUATION, TEXT, BINARY))
CONTROL_OPCODES = frozenset((CLOSE, PING, PONG))

MAX_CONTROL_BYTES = 125

PROTOCOL_ERROR = 1002

_FIN = 0x80
_RESERVED = 0x70
_MASKED = 0x80
_MASK_BYTES = 4
_U16 = Struct(">H")
_U64 = Struct(">Q")
_LENGTHS = {126: (_U16, 126), 127: (_U64, 1 << 16)}
"""Short length that announces a longer one: (its form, the least it may say)."""


class WebSocketError(RemoteProtocolError):
    """The peer broke the rules.

    Attributes:
        code: What the close frame to it says.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Piece:
    """Some bytes of one frame.

    Attributes:
        opcode: Of the frame.
        final: The frame is the last of its message.
        starts: It is the frame's first piece; `announced` is what the whole frame carries.
        ends: It is the frame's last piece.
        payload: Unmasked; may be empty.
    """

    __slots__ = ("announced", "ends", "final", "opcode", "payload", "starts")

    def __init__(
        self,
        opcode: int,
        payload: bytes,
        *,
        final: bool,
        starts: bool,
        ends: bool,
        announced: int,
    ) -> None:
        self.opcode = opcode
        self.final = final
        self.starts = starts
        self.ends = ends
        self.announced = announced
        self.payload = payload


def apply_mask(payload: bytes, mask: bytes) -> bytes:
    """Mask or unmask a payload that begins with the mask's first byte."""
    size = len(payload)
    masks = (mask * (size // _MASK_BYTES + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(masks, "little")).to_bytes(
        size, "little"
    )


def encode_frame(opcode: int, payload: bytes, *, final: bool = True, mask: bytes = b"") -> bytes:
    """A whole frame.

    Args:
        opcode: One of the above.
        payload: All of it.
        final: False: further frames of the message follow.
        mask: Four bytes if a client sends it; empty for a server.
    """
    masked = _MASKED if mask else 0
    first = opcode | (_FIN if final else 0)
    size = len(payload)
    if size < 126:
        header = bytes((first, masked | size))
    elif size < 1 << 16:
        header = bytes((first, masked | 126)) + _U16.pack(size)
    else:
        header = bytes((first, masked | 127)) + _U64.pack(size)
    return header + mask + (apply_mask(payload, mask) if mask else payload)


class FrameReader:
    """Cuts what a client sends into pieces of frames.

    Life cycle, again and again: `receive` some bytes, then take `next_piece()` until it is
    None. What is wrong is raised when its turn comes, after all that came before it.
    """

    __slots__ = ("_announced", "_buffer", "_final", "_in_frame", "_mask", "_opcode", "_rest",
                 "_starts")  # fmt: skip

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._in_frame = False
        self._starts = False
        self._final = False
        self._opcode = 0
        self._mask = b""
        self._announced = 0
        self._rest = 0

    def receive(self, data: bytes | memoryview) -> None:
        """Bytes came."""
        self._buffer += data

    @property
    def pending_bytes(self) -> int:
        """Bytes that no piece has carried yet."""
        return len(self._buffer)

    def next_piece(self) -> Piece | None:
        """The next piece; None until more bytes come.

        Raises:
            WebSocketError: The frame is none that a client may send.
        """
        if not self._in_frame and not self._read_header():
            return None
        collecting = self._opcode in CONTROL_OPCODES
        if collecting and len(self._buffer) < self._rest:
            return None
        if not self._starts and not self._buffer:
            return None
        return self._take_piece()

    def _take_piece(self) -> Piece:
        payload = apply_mask(bytes(self._buffer[: self._rest]), self._mask)
        size = len(payload)
        del self._buffer[:size]
        self._rest -= size
        turn = size % _MASK_BYTES
        self._mask = self._mask[turn:] + self._mask[:turn]
        self._in_frame = self._rest > 0
        starts, self._starts = self._starts, False
        return Piece(
            self._opcode,
            payload,
            final=self._final,
            starts=starts,
            ends=not self._in_frame,
            announced=self._announced,
        )

    def _read_header(self) -> bool:
        """Take a frame's header off the buffer; False: it isn't whole yet."""
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        _check_start(buffer[0], buffer[1])
        length = buffer[1] & 0x7F
        size = 2
        if length in _LENGTHS:
            form, least = _LENGTHS[length]
            size += form.size
            if len(buffer) < size:
                return False
            (length,) = form.unpack_from(buffer, 2)
            _check_length(length, least)
        if len(buffer) < size + _MASK_BYTES:
            return False
        self._begin(buffer[0], length, bytes(buffer[size : size + _MASK_BYTES]))
        del buffer[: size + _MASK_BYTES]
        return True

    def _begin(self, first: int, length: int, mask: bytes) -> None:
        self._opcode = first & 0x0F
        self._final = bool(first & _FIN)
        self._mask = mask
        self._announced = self._rest = length
        self._in_frame = self._starts = True


def _check_start(first: int, second: int) -> None:
    opcode = first & 0x0F
    if first & _RESERVED:
        raise WebSocketError(PROTOCOL_ERROR, "reserved bits are set: no extension was agreed on")
    if opcode not in DATA_OPCODES and opcode not in CONTROL_OPCODES:
        raise WebSocketError(PROTOCOL_ERROR, f"there is no opcode {opcode}")
    if not second & _MASKED:
        raise WebSocketError(PROTOCOL_ERROR, "a client has to mask its frames")
    if opcode in CONTROL_OPCODES:
        if not first & _FIN:
            raise WebSocketError(PROTOCOL_ERROR, "a control frame can't be fragmented")
        if second & 0x7F > MAX_CONTROL_BYTES:
            raise WebSocketError(PROTOCOL_ERROR, "a control frame carries at most 125 bytes")


def _check_length(length: int, least: int) -> None:
    if length < least:
        raise WebSocketError(PROTOCOL_ERROR, "the length isn't in its shortest form")
    if length >> 63:
        raise WebSocketError(PROTOCOL_ERROR, "the length has its highest bit set")
