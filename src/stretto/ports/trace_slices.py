"""Packs trace packets into ReadBuffers replies, and joins them again.

    a trace                0a n packet                 repeated Trace.packet
    ReadBuffersResponse    12 m 0a n packet 10 01      slices { data, last_slice_for_packet }

A packet that fits into a frame is one slice, with `last_slice_for_packet`. A larger packet is
split into several slices, each in its own reply; only the last one has the flag. Slices of
different packets are not interleaved. Perfetto's service sends each packet in two or more slices.
Native code handles the packets that are complete in one reply.

Source: docs/formats/ipc.md, "ConsumerPort".
"""

from __future__ import annotations

from stretto import _native
from stretto.base.errors import DecodeError
from stretto.ipc.frames import MAX_FRAME_BYTES
from stretto.protozero import wire

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REPLY_BYTES = MAX_FRAME_BYTES - 512
"""Maximum size of all slices in a reply, including their overhead."""
SLICE_OVERHEAD_BYTES = 16
MAX_SLICE_BYTES = MAX_REPLY_BYTES - SLICE_OVERHEAD_BYTES
MAX_PACKET_BYTES = (1 << 28) - 1
"""Maximum size of a packet: its length is a varint of four bytes."""

_DATA, _LAST = 1, 2
_SLICES = 2
_LAST_MARK = b"\x10\x01"


def pack_slices(trace: bytes) -> Iterator[bytes]:
    """Yield encoded ReadBuffersResponses that contain a trace.

    Args:
        trace: Complete packets, each with its tag `0a` and length.
    """
    start, end = 0, len(trace)
    while start < end:
        reply, next_start = _native.pack_slices(trace, start, MAX_REPLY_BYTES)
        if next_start > start:
            yield reply
        else:  # The packet is larger than the largest reply.
            size, packet = wire.read_varint(trace, start + 1, end)
            next_start = packet + size
            yield from _pack_large(trace, packet, next_start)
        start = next_start


def _pack_large(trace: bytes, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, MAX_SLICE_BYTES):
        stop = min(at + MAX_SLICE_BYTES, end)
        mark = _LAST_MARK if stop == end else b""
        yield wire.bytes_field(_SLICES, wire.bytes_field(_DATA, trace[at:stop]) + mark)


class SliceJoiner:
    """Joins the slices of replies into packets."""

    def __init__(self) -> None:
        self._begun = bytearray()  # The first slices of an incomplete packet.
        self._in_packet = False

    def add(self, reply: bytes) -> bytes:
        """Return the packets completed by `reply`, each with its tag `0a` and length.

        Args:
            reply: An encoded ReadBuffersResponse.

        Raises:
            DecodeError: The reply is malformed, or a packet is too large.
        """
        trace = bytearray()
        at, end = 0, len(reply)
        while at < end:
            if not self._in_packet:
                packets, at = _native.join_slices(reply, at)
                trace += packets
            if at < end:  # The next field is a part of a packet, or unknown.
                number, wire_type, start, at = wire.read_field(reply, at, end)
                if number == _SLICES and wire_type == wire.DELIMITED:
                    trace += self._add_slice(reply[start:at])
        return bytes(trace)

    def _add_slice(self, encoded: bytes) -> bytes:
        data, is_last = _parse(encoded)
        self._begun += data
        if len(self._begun) > MAX_PACKET_BYTES:
            raise DecodeError(f"a packet of more than {MAX_PACKET_BYTES} bytes")
        self._in_packet = not is_last
        if self._in_packet:
            return b""
        packet = wire.bytes_field(_DATA, bytes(self._begun))
        self._begun = bytearray()
        return packet


def _parse(encoded: bytes) -> tuple[bytes, bool]:
    data, is_last = b"", False
    for number, wire_type, value, _, end in wire.read_fields(encoded):
        if number == _DATA and wire_type == wire.DELIMITED:
            data = encoded[value:end]
        elif number == _LAST and wire_type == wire.VARINT:
            is_last = value != 0
    return data, is_last
