"""Frames: how messages are cut out of a stream of bytes.

    +----------------+---------------------+----------------+----
    | u32 LE: length | IPCFrame (protobuf) | u32 LE: length | ...
    +----------------+---------------------+----------------+----

The length doesn't count itself. Header and payload together have at most
128 KiB; an announced length above that ends the connection, an empty payload is
skipped, and a payload that is no IPCFrame is dropped.

Source: docs/formats/ipc.md, "Frames".
"""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import Struct

from stretto.base.errors import DecodeError, LocalProtocolError, RemoteProtocolError
from stretto.protos.ipc import IPCFrame
from stretto.protozero.wire import bytes_field, varint_field

MAX_FRAME_BYTES = 131072
"""Of a frame, with its header."""

_REQUEST_ID = IPCFrame.LAYOUT.field("request_id").number
_REPLY = IPCFrame.LAYOUT.field("msg_invoke_method_reply").number
_SUCCESS = IPCFrame.InvokeMethodReply.LAYOUT.field("success").number
_HAS_MORE = IPCFrame.InvokeMethodReply.LAYOUT.field("has_more").number
_REPLY_PROTO = IPCFrame.InvokeMethodReply.LAYOUT.field("reply_proto").number

_HEADER = Struct("<I")
HEADER_BYTES = _HEADER.size
MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - HEADER_BYTES


def encode_frame(frame: IPCFrame) -> bytes:
    """The frame as it goes over the wire.

    Raises:
        LocalProtocolError: It's too large; the peer would hang up.
    """
    return _framed(frame.encode())


def _framed(payload: bytes) -> bytes:
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise LocalProtocolError(
            f"a message of {len(payload)} bytes: a frame carries at most {MAX_PAYLOAD_BYTES}"
        )
    return _HEADER.pack(len(payload)) + payload


def encode_reply(
    request_id: int, reply: bytes, *, success: bool = True, has_more: bool = False
) -> bytes:
    """The same as `encode_frame` for an InvokeMethodReply: a service sends very many.

    Args:
        request_id: Of the request that it answers.
        reply: The encoded reply_proto.
        success: Whether the request was carried out.
        has_more: Whether further replies follow.

    Raises:
        LocalProtocolError: It's too large; the peer would hang up.
    """
    body = varint_field(_SUCCESS, success)
    if success:
        body += varint_field(_HAS_MORE, has_more) + bytes_field(_REPLY_PROTO, reply)
    return _framed(varint_field(_REQUEST_ID, request_id) + bytes_field(_REPLY, body))


def decode_payload(payload: bytes) -> IPCFrame | None:
    """The message in a payload, None if it is none."""
    try:
        return IPCFrame.decode(payload)
    except DecodeError:
        return None


class FrameReader:
    """Collects received bytes until they are whole frames.

    Life cycle, again and again: receive into `space()`, tell `received(n)`, then
    take `next_payload()` until it is None. Between frames `pending()` shows the
    bytes not taken yet, of which a fast path may `consume` whole frames itself. `close` at the end.
    """

    __slots__ = ("_end", "_start", "_view")

    def __init__(self) -> None:
        # Pages of its own: what no frame ever filled takes no memory.
        self._view = memoryview(mmap(-1, MAX_FRAME_BYTES, MAP_PRIVATE | MAP_ANONYMOUS))
        self._start = 0
        self._end = 0

    def close(self) -> None:
        """Give the memory back. What was received is gone, and nothing more may be."""
        self._view = memoryview(b"")
        self._start = self._end = 0

    def space(self) -> memoryview:
        """Where the next bytes go; never empty once the whole frames are taken."""
        if self._start > 0:
            rest = self._end - self._start
            self._view[:rest] = self._view[self._start : self._end]
            self._start, self._end = 0, rest
        return self._view[self._end :]

    def received(self, size: int) -> None:
        """`size` bytes were put into `space()`."""
        self._end += size

    def pending(self) -> memoryview:
        """The bytes not taken yet; valid until the next call of `space`."""
        return self._view[self._start : self._end]

    def consume(self, size: int) -> None:
        """Take `size` bytes of `pending()`: whole frames."""
        self._start += size

    @property
    def pending_size(self) -> int:
        """How many bytes `pending` shows."""
        return self._end - self._start

    @property
    def has_frame(self) -> bool:
        """`next_payload` gives something now, or raises."""
        if self._end - self._start < HEADER_BYTES:
            return False
        length: int = _HEADER.unpack_from(self._view, self._start)[0]
        whole = self._start + HEADER_BYTES + length <= self._end
        return whole or length > MAX_PAYLOAD_BYTES

    def next_payload(self) -> bytes | None:
        """The next frame's payload; None until it is complete.

        Raises:
            RemoteProtocolError: A frame is announced that is too large.
        """
        while self._end - self._start >= HEADER_BYTES:
            (length,) = _HEADER.unpack_from(self._view, self._start)
            if length > MAX_PAYLOAD_BYTES:
                raise RemoteProtocolError(
                    f"the peer announced a frame of {length} bytes (at most {MAX_PAYLOAD_BYTES}): "
                    "it doesn't speak this protocol"
                )
            begin = self._start + HEADER_BYTES
            if begin + length > self._end:
                return None
            self._start = begin + length
            if length:
                return bytes(self._view[begin : self._start])
        return None
