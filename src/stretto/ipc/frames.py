"""Frames: splits a stream of bytes into messages.

    +----------------+---------------------+----------------+----
    | u32 LE: length | IPCFrame (protobuf) | u32 LE: length | ...
    +----------------+---------------------+----------------+----

The length excludes itself. Header and payload together have at most 128 KiB. A larger length ends
the connection, an empty payload is skipped, and a payload that is not an IPCFrame is dropped.

Source: docs/formats/ipc.md, "Frames".
"""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

from stretto.base.errors import DecodeError, LocalProtocolError, RemoteProtocolError
from stretto.protos.ipc import IPCFrame
from stretto.protozero.wire import bytes_field, varint_field

MAX_FRAME_BYTES = 131072
"""Maximum size of a frame with its header."""

_REQUEST_ID = IPCFrame.LAYOUT.field("request_id").number
_REPLY = IPCFrame.LAYOUT.field("msg_invoke_method_reply").number
_SUCCESS = IPCFrame.InvokeMethodReply.LAYOUT.field("success").number
_HAS_MORE = IPCFrame.InvokeMethodReply.LAYOUT.field("has_more").number
_REPLY_PROTO = IPCFrame.InvokeMethodReply.LAYOUT.field("reply_proto").number

HEADER_BYTES = 4
MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - HEADER_BYTES


def encode_frame(frame: IPCFrame) -> bytes:
    """Encode a frame with its header.

    Raises:
        LocalProtocolError: The frame is too large; the peer would disconnect.
    """
    return _framed(frame.encode())


def _framed(payload: bytes) -> bytes:
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise LocalProtocolError(
            f"a message of {len(payload)} bytes: a frame carries at most {MAX_PAYLOAD_BYTES}"
        )
    return len(payload).to_bytes(HEADER_BYTES, "little") + payload


def encode_reply(
    request_id: int, reply: bytes, *, success: bool = True, has_more: bool = False
) -> bytes:
    """Encode a frame with an InvokeMethodReply: faster than `encode_frame`.

    Args:
        request_id: Id of the request.
        reply: The encoded reply_proto.
        success: Whether the request succeeded.
        has_more: Whether further replies follow.

    Raises:
        LocalProtocolError: The frame is too large; the peer would disconnect.
    """
    body = varint_field(_SUCCESS, success)
    if success:
        body += varint_field(_HAS_MORE, has_more) + bytes_field(_REPLY_PROTO, reply)
    return _framed(varint_field(_REQUEST_ID, request_id) + bytes_field(_REPLY, body))


def decode_payload(payload: bytes) -> IPCFrame | None:
    """Decode the IPCFrame in a payload; None if it is malformed."""
    try:
        return IPCFrame.decode(payload)
    except DecodeError:
        return None


class FrameReader:
    """A receive buffer that splits the received bytes into frames.

    Usage, repeatedly: receive into `space()`, call `received(n)`, then call `next_payload()` until
    it returns None. Between frames, a fast path may read `pending()` and `consume` complete frames
    itself. Finally call `close`.
    """

    __slots__ = ("_end", "_start", "_view")

    def __init__(self) -> None:
        # The buffer is a mapping: its pages take no memory until a frame fills them.
        self._view = memoryview(mmap(-1, MAX_FRAME_BYTES, MAP_PRIVATE | MAP_ANONYMOUS))
        self._start = 0
        self._end = 0

    def close(self) -> None:
        """Free the buffer with its data; nothing may be received afterwards."""
        self._view = memoryview(b"")
        self._start = self._end = 0

    def space(self) -> memoryview:
        """Return the free part of the buffer; not empty if all complete frames were read."""
        if self._start > 0:
            rest = self._end - self._start
            self._view[:rest] = self._view[self._start : self._end]
            self._start, self._end = 0, rest
        return self._view[self._end :]

    def received(self, size: int) -> None:
        """Add `size` bytes that were written into `space()`."""
        self._end += size

    def pending(self) -> memoryview:
        """Return the unread bytes; valid until the next call of `space`."""
        return self._view[self._start : self._end]

    def consume(self, size: int) -> None:
        """Skip `size` bytes of `pending()`, which must be complete frames."""
        self._start += size

    @property
    def pending_size(self) -> int:
        """Number of unread bytes."""
        return self._end - self._start

    @property
    def has_frame(self) -> bool:
        """Whether `next_payload` would return a payload or raise."""
        if self._end - self._start < HEADER_BYTES:
            return False
        length = self._announced()
        whole = self._start + HEADER_BYTES + length <= self._end
        return whole or length > MAX_PAYLOAD_BYTES

    def _announced(self) -> int:
        """Return the length in the header of the next frame, which must be complete."""
        return int.from_bytes(self._view[self._start : self._start + HEADER_BYTES], "little")

    def next_payload(self) -> bytes | None:
        """Return the payload of the next frame; None if it is incomplete.

        Raises:
            RemoteProtocolError: The announced frame is too large.
        """
        while self._end - self._start >= HEADER_BYTES:
            length = self._announced()
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
