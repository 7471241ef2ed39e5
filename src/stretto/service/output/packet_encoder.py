"""A few functions that append protobuf fields in the order in which they are called.

The service's own packets have a fixed order of fields that isn't that of their numbers
(docs/formats/service.md, "Order of packets"), which is why they aren't built from message classes.
"""

from __future__ import annotations

_U64 = (1 << 64) - 1
_VARINT, _LENGTH = 0, 2


def varint(value: int) -> bytes:
    """Encode `value`; a negative one takes 10 bytes, as int32 and int64 do."""
    value &= _U64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A varint field: any integer, bool or enum type but the zigzag ones."""
    return varint(field << 3 | _VARINT) + varint(value)


def blob(field: int, data: bytes) -> bytes:
    """A length-delimited field: bytes, or a message that is encoded already."""
    return varint(field << 3 | _LENGTH) + varint(len(data)) + data


def text(field: int, value: str) -> bytes:
    """A string field."""
    return blob(field, value.encode("utf-8", "surrogateescape"))


def framed(packet: bytes) -> bytes:
    """The packet as part of a trace: Trace.packet, field 1."""
    return blob(1, packet)


def whole_packets(trace: bytes, limit: int) -> int:
    """Size of the longest run of whole packets at the start of `trace` below `limit` bytes.

    Args:
        trace: Framed packets, as `Readback.read` and `framed` make them.
        limit: The run ends before this many bytes are reached.
    """
    end = 0
    while end < len(trace):
        at, size, shift = end + 1, 0, 0
        while True:
            byte = trace[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if at + size >= limit or at + size > len(trace):
            break
        end = at + size
    return end
