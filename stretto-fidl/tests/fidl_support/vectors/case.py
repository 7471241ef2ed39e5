"""The structure of a test vector, and helpers that write its bytes.

Vectors are written from the rules of the wire format, not with the codec: the
helpers only convert numbers to bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

FF8 = b"\xff" * 8
"""The marker of a present value."""
ZERO8 = bytes(8)
"""The marker of an absent value."""


class Case(NamedTuple):
    """One test vector: a value and its encoding, or an invalid value or message.

    Fields:
        name: Name of the vector, unique in its module.
        type: Name of a definition in `schema`.
        data: The encoded message; None if encoding fails.
        value: Function that makes the value from the namespace and the handles; None if decoding
            fails.
        code: Error code of the failure; None for success.
        handles: Object type and rights of each handle.
        way: Direction of the test: `both`, `encode` or `decode`.
        wire: Wire format, 1 or 2.
    """

    name: str
    type: str
    data: bytes | None = None
    value: Callable[..., Any] | None = None
    code: str | None = None
    handles: Sequence[tuple[str, int | None]] = ()
    way: str = "both"
    wire: int = 2


def num(value: int, size: int) -> bytes:
    """Return a little-endian number of `size` bytes."""
    return value.to_bytes(size, "little", signed=value < 0)


def u16(value: int) -> bytes:
    return num(value, 2)


def u32(value: int) -> bytes:
    return num(value, 4)


def u64(value: int) -> bytes:
    return num(value, 8)


def f32(value: float) -> bytes:
    return struct.pack("<f", value)


def f64(value: float) -> bytes:
    return struct.pack("<d", value)


def pad(data: bytes) -> bytes:
    """Return the data, padded with zeros to a multiple of 8 bytes."""
    return data + bytes(-len(data) % 8)


def inline(data: bytes, handles: int = 0, flags: int = 1) -> bytes:
    """Return an envelope that holds its value inline."""
    return data + bytes(4 - len(data)) + u16(handles) + u16(flags)


def outside(size: int, handles: int = 0, flags: int = 0) -> bytes:
    """Return an envelope whose value is out of line."""
    return u32(size) + u16(handles) + u16(flags)


def v1(size: int, handles: int = 0, presence: bytes = FF8) -> bytes:
    """Return an envelope of wire format v1."""
    return u32(size) + u32(handles) + presence


def ok(name: str, type_: str, data: bytes, value: Callable[..., Any], **more: Any) -> Case:
    """Return a test vector that is both encoded and decoded."""
    return Case(name, type_, data, value, **more)


def decode_fails(name: str, type_: str, data: bytes, code: str, **more: Any) -> Case:
    return Case(name, type_, data, code=code, way="decode", **more)


def encode_fails(name: str, type_: str, value: Callable[..., Any], code: str, **more: Any) -> Case:
    return Case(name, type_, value=value, code=code, way="encode", **more)


def each_byte(data: bytes, positions: Iterable[int], to: int = 0xEE) -> Iterable[tuple[int, bytes]]:
    """Yield pairs: a position, and a copy of the data with the byte `to` at this position."""
    for position in positions:
        yield position, data[:position] + bytes([to]) + data[position + 1 :]
