"""Protobuf's wire encoding: varints, tags, and single fields.

A field is a tag, `field number << 3 | wire type` as a varint, and its value: a varint (type 0),
8 or 4 little-endian bytes (types 1 and 5), or a varint length and that many bytes (type 2). The
types 3 and 4 (groups), 6 and 7 are treated as malformed, as in Perfetto.
"""

from __future__ import annotations

from stretto.base.errors import DecodeError

try:
    from stretto._native import bytes_field, tag, varint, varint_field
except ImportError:
    from stretto.protozero.wire_pure import bytes_field, tag, varint, varint_field

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    RawField: TypeAlias = tuple[int, int, int, int]
    """The result of `read_field`."""

__all__ = [
    "DELIMITED",
    "FIXED32",
    "FIXED64",
    "MAX_SIZE",
    "SIZE_FIELD_BYTES",
    "VARINT",
    "bytes_field",
    "read_field",
    "read_fields",
    "read_value",
    "read_varint",
    "redundant_varint",
    "tag",
    "unzigzag",
    "varint",
    "varint_field",
    "zigzag",
]

VARINT = 0
FIXED64 = 1
DELIMITED = 2
FIXED32 = 5

SIZE_FIELD_BYTES = 4
MAX_SIZE = 0x0FFFFFFF
"""The largest length that a varint of four bytes can encode."""

_U64 = 0xFFFFFFFFFFFFFFFF
_U32 = 0xFFFFFFFF


def redundant_varint(value: int) -> bytes:
    """Encode a length of at most MAX_SIZE in exactly four bytes."""
    return bytes(
        (
            value & 0x7F | 0x80,
            value >> 7 & 0x7F | 0x80,
            value >> 14 & 0x7F | 0x80,
            value >> 21 & 0x7F,
        )
    )


def zigzag(value: int) -> int:
    """Map a signed 64-bit value to an unsigned one: 0, -1, 1, -2 to 0, 1, 2, 3."""
    return (value << 1 ^ value >> 63) & _U64


def unzigzag(value: int) -> int:
    """Invert `zigzag`."""
    return value >> 1 ^ -(value & 1)


def read_varint(data: bytes | memoryview, pos: int, end: int) -> tuple[int, int]:
    """Read the varint at `pos`; return its value, truncated to 64 bits, and the next position.

    Raises:
        DecodeError: the varint goes beyond `end`, or has more than ten bytes.
    """
    if pos < end and data[pos] < 0x80:
        return data[pos], pos + 1
    value = shift = 0
    for at in range(pos, min(pos + 10, end)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _U64, at + 1
        shift += 7
    raise DecodeError(f"unterminated varint at offset {pos}")


def read_value(data: bytes | memoryview, pos: int, end: int, wire_type: int) -> tuple[int, int]:
    """Read an element of a packed field; return the element and the next position.

    Raises:
        DecodeError: the element is truncated.
    """
    if wire_type == VARINT:
        return read_varint(data, pos, end)
    after = pos + (8 if wire_type == FIXED64 else 4)
    if after > end:
        raise DecodeError(f"cut element of a packed field at offset {pos}")
    return int.from_bytes(data[pos:after], "little"), after


def read_field(data: bytes | memoryview, pos: int, end: int) -> RawField:
    """Read the field at `pos`.

    Returns:
        Field number, wire type, value, and the position after the field. The value is unsigned. For
        a delimited field the value is the position of the first byte of the content, which ends at
        the position after the field.

    Raises:
        DecodeError: the field is malformed or extends beyond `end`.
    """
    key, after = read_varint(data, pos, end)
    number, wire_type = key >> 3 & _U32, key & 7
    if number == 0:
        raise DecodeError(f"field number 0 at offset {pos}")
    if wire_type == VARINT:
        value, after = read_varint(data, after, end)
        return number, wire_type, value, after
    if wire_type == DELIMITED:
        size, after = read_varint(data, after, end)
        start, after = after, after + size
        value = start
    elif wire_type in (FIXED64, FIXED32):
        start, after = after, after + (8 if wire_type == FIXED64 else 4)
        value = int.from_bytes(data[start:after], "little")
    else:
        raise DecodeError(f"wire type {wire_type} of field {number} at offset {pos}")
    if after > end:
        raise DecodeError(f"field {number} at offset {pos} reaches past the end")
    return number, wire_type, value, after


def read_fields(data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the fields of a message: number, wire type, value, first position, position after it.

    Raises:
        DecodeError: a field is malformed.
    """
    end = 0
    while end < len(data):
        start = end
        number, wire_type, value, end = read_field(data, start, len(data))
        yield number, wire_type, value, start, end
