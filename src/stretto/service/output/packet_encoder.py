"""Functions that encode single protobuf fields.

The fields of the service's own packets have a fixed order that differs from the order of their
numbers (docs/formats/service.md, "Order of packets"), so message classes can't encode them.
"""

from __future__ import annotations

_U64 = (1 << 64) - 1
_VARINT, _LENGTH = 0, 2


def varint(value: int) -> bytes:
    """Encode a varint; a negative value takes 10 bytes, as in int32 and int64 fields."""
    value &= _U64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encode a varint field of an integer, bool or enum type, except sint32 and sint64."""
    return varint(field << 3 | _VARINT) + varint(value)


def blob(field: int, data: bytes) -> bytes:
    """Encode a length-delimited field: bytes or an encoded message."""
    return varint(field << 3 | _LENGTH) + varint(len(data)) + data


def text(field: int, value: str) -> bytes:
    """Encode a string field."""
    return blob(field, value.encode("utf-8", "surrogateescape"))


def framed(packet: bytes) -> bytes:
    """Encode a packet as Trace.packet (field 1)."""
    return blob(1, packet)


def whole_packets(trace: bytes, limit: int) -> int:
    """Return the size of the largest run of packets at the start of `trace` below a limit.

    Args:
        trace: Framed packets, as returned by `Readback.read` and `framed`.
        limit: Exclusive limit of the result, in bytes.
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
