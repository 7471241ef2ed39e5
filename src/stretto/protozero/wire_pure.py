"""Encodes fields without the native part: see `stretto.protozero.wire`."""

from __future__ import annotations

_VARINT = 0
_DELIMITED = 2


def varint(value: int) -> bytes:
    """Encode a value from 0 to 2**64 - 1 in as few bytes as possible."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire_type: int) -> bytes:
    """Encode the tag of a field."""
    value = number << 3 | wire_type
    return bytes((value,)) if value < 0x80 else varint(value)


def varint_field(number: int, value: int) -> bytes:
    """Encode a complete field of wire type 0; negative values as 64-bit two's complement."""
    return tag(number, _VARINT) + varint(value & 0xFFFFFFFFFFFFFFFF)


def bytes_field(number: int, data: bytes | bytearray | memoryview) -> bytes:
    """Encode a complete field of wire type 2."""
    return tag(number, _DELIMITED) + varint(len(data)) + data
