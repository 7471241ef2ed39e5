"""Trace bytes on their way through ReadBuffers.

    a trace                0a n packet                 Trace.packet, again and again
    ReadBuffersResponse    12 m 0a n packet 10 01      slices { data, last_slice_for_packet }

So a whole packet is a slice as it stands, between a length and a mark. One that is too
large for a frame goes in several slices, each in a reply of its own; only the last has
the mark. Slices of different packets never mix.

Source: perfetto-abi 2.7.
"""

from __future__ import annotations

from stretto.base.errors import DecodeError
from stretto.ipc.frames import MAX_FRAME_BYTES
from stretto.protozero.wire import DELIMITED, VARINT, bytes_field, read_field, read_varint, varint

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REPLY_BYTES = MAX_FRAME_BYTES - 64
SLICE_OVERHEAD_BYTES = 16
"""More than what stands around a slice."""
MAX_SLICE_BYTES = MAX_FRAME_BYTES - 512
MAX_PACKET_BYTES = (1 << 28) - 1
"""Nobody can write a longer one: its length field has four bytes."""

_DATA, _LAST = 1, 2
_SLICES = 2
_SLICE_TAG = b"\x12"
_PACKET_TAG = 0x0A
_LAST_MARK = b"\x10\x01"


def pack_slices(trace: bytes) -> Iterator[bytes]:
    """Encoded ReadBuffersResponses that carry a trace.

    Args:
        trace: Whole packets, each with its `0a` and length.
    """
    reply, room = bytearray(), MAX_REPLY_BYTES
    start, end = 0, len(trace)
    while start < end:
        size, packet = read_varint(trace, start + 1, end)
        stop = packet + size
        cost = size + SLICE_OVERHEAD_BYTES
        if cost > room and reply:
            yield bytes(reply)
            reply, room = bytearray(), MAX_REPLY_BYTES
        if size > MAX_SLICE_BYTES:
            yield from _pack_large(trace, packet, stop)
        else:
            reply += _SLICE_TAG + varint(stop - start + len(_LAST_MARK))
            reply += trace[start:stop] + _LAST_MARK
            room -= cost
        start = stop
    if reply:
        yield bytes(reply)


def _pack_large(trace: bytes, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, MAX_SLICE_BYTES):
        stop = min(at + MAX_SLICE_BYTES, end)
        mark = _LAST_MARK if stop == end else b""
        yield bytes_field(_SLICES, bytes_field(_DATA, trace[at:stop]) + mark)


class SliceJoiner:
    """Makes a trace of replies again."""

    __slots__ = ("_begun", "_begun_bytes")

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # the slices of a packet that isn't complete
        self._begun_bytes = 0

    def add(self, reply: bytes) -> bytes:
        """The packets that `reply` completes, each with its `0a` and length.

        Args:
            reply: An encoded ReadBuffersResponse.

        Raises:
            DecodeError: It isn't one, or the packet gets too large.
        """
        trace = bytearray()
        at, end = 0, len(reply)
        while at < end:
            number, wire_type, start, at = read_field(reply, at, end)
            if number == _SLICES and wire_type == DELIMITED:
                trace += self._add_slice(reply[start:at])
        return bytes(trace)

    def _add_slice(self, encoded: bytes) -> bytes:
        if not self._begun and _is_packet(encoded):
            return encoded[: -len(_LAST_MARK)]
        data, is_last = _parse(encoded)
        if data:
            self._begun.append(data)
        self._begun_bytes += len(data)
        if self._begun_bytes > MAX_PACKET_BYTES:
            raise DecodeError(f"a packet of more than {MAX_PACKET_BYTES} bytes")
        if not is_last:
            return b""
        packet = bytes_field(_DATA, b"".join(self._begun))
        self._begun.clear()
        self._begun_bytes = 0
        return packet


def _is_packet(encoded: bytes) -> bool:
    """Whether a slice is just what `pack_slices` makes of a whole packet."""
    end = len(encoded) - len(_LAST_MARK)
    if end < 2 or encoded[0] != _PACKET_TAG or encoded[end:] != _LAST_MARK:
        return False
    size, packet = read_varint(encoded, 1, end)
    return packet + size == end


def _parse(encoded: bytes) -> tuple[bytes, bool]:
    data, is_last = b"", False
    at, end = 0, len(encoded)
    while at < end:
        number, wire_type, value, at = read_field(encoded, at, end)
        if number == _DATA and wire_type == DELIMITED:
            data = encoded[value:at]
        elif number == _LAST and wire_type == VARINT:
            is_last = value != 0
    return data, is_last
