"""A minimal protobuf codec for the differential tests, independent of Stretto's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Fields = list[tuple[int, "int | bytes"]]


def varint(value: int) -> bytes:
    """Encode a number as a base-128 varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encode a varint field."""
    return varint(field << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def blob(field: int, value: bytes | str) -> bytes:
    """Encode a length-delimited field."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _walk(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _read_varint(data, at)
            yield tag, value
            continue
        if kind == 2:
            size, at = _read_varint(data, at)
        else:
            size = {1: 8, 5: 4}[kind]
        yield tag, data[at : at + size]
        at += size


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Iterate over (number, value) of a well-formed message; values are integers or bytes."""
    for tag, value in _walk(data):
        yield tag >> 3, value


def fields_and_tags(data: bytes) -> Iterator[tuple[int, int]]:
    """Iterate over the field numbers of a well-formed message and their tags."""
    for tag, _ in _walk(data):
        yield tag >> 3, tag


def last_number(data: bytes, field: int) -> int:
    """Return the last value of a varint field, 0 if it is missing."""
    return next((int(v) for n, v in reversed(list(fields(data))) if n == field), 0)  # type: ignore[arg-type]


def blobs(data: bytes, field: int) -> list[bytes]:
    """Return the values of a repeated length-delimited field."""
    return [bytes(v) for n, v in fields(data) if n == field]  # type: ignore[arg-type]
