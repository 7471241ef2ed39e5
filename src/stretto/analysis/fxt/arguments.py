"""Encoding and decoding of typed arguments.

header word    bits 0-3 type, 4-15 number of words, 16-31 reference to the name,
               32-63 the value of a small type, the size of bytes, the reference of a text
name           if inline
value          a word, or padded bytes, if the type has one
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.records import Argument
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.analysis.fxt.words import Words

    Refer = Callable[[str], tuple[int, bytes]]

_MASK64 = (1 << 64) - 1
_INT32 = struct.Struct("<i")
_WORD = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")


def read_arguments(words: Words, count: int) -> tuple[Argument, ...]:
    """Read the next `count` arguments of a record; arguments of unknown types are left out.

    Raises:
        DecodeError: An argument reaches beyond the record, or is shorter than its type.
    """
    found = []
    for _ in range(count):
        start = words.position
        header = words.word()
        end = start + (header >> 4 & 0xFFF) * fxt.WORD_BYTES
        if end <= start:
            raise DecodeError("an argument of size 0")
        inside = words.part(end)
        name = inside.text(header >> 16 & 0xFFFF)
        read = _READERS.get(header & 0xF)
        if read is not None:
            found.append(Argument(name, header & 0xF, read(inside, header >> 32)))
        words.position = end
    return tuple(found)


def _word(words: Words, _: int) -> int:
    return words.word()


def _signed(words: Words, _: int) -> int:
    value = words.word()
    return value - (1 << 64) if value >> 63 else value


def _double(words: Words, _: int) -> float:
    (value,) = _DOUBLE.unpack(_WORD.pack(words.word()))
    return float(value)


_READERS: dict[int, Callable[[Words, int], int | float | str | bytes | None]] = {
    fxt.NULL: lambda *_: None,
    fxt.INT32: lambda _, high: high - (1 << 32) if high >> 31 else high,
    fxt.UINT32: lambda _, high: high,
    fxt.INT64: _signed,
    fxt.UINT64: _word,
    fxt.DOUBLE: _double,
    fxt.TEXT: lambda words, high: words.text(high & 0xFFFF),
    fxt.POINTER: _word,
    fxt.KOID: _word,
    fxt.BOOL: lambda _, high: bool(high & 1),
    fxt.BYTES: lambda words, high: words.stream(high),
}


def argument_of(name: str, value: object) -> Argument | None:
    """Return an argument of the smallest type that can hold the value; None if no type can."""
    if value is None:
        return Argument(name, fxt.NULL, None)
    if isinstance(value, bool):
        return Argument(name, fxt.BOOL, value)
    if isinstance(value, int):
        return _integer(name, value)
    if isinstance(value, float):
        return Argument(name, fxt.DOUBLE, value)
    if isinstance(value, str):
        return Argument(name, fxt.TEXT, value)
    return Argument(name, fxt.BYTES, value) if isinstance(value, bytes) else None


def _integer(name: str, value: int) -> Argument | None:
    if -(1 << 31) <= value < 1 << 31:
        return Argument(name, fxt.INT32, value)
    if 0 <= value < 1 << 32:
        return Argument(name, fxt.UINT32, value)
    if -(1 << 63) <= value < 1 << 63:
        return Argument(name, fxt.INT64, value)
    return Argument(name, fxt.UINT64, value) if 0 <= value < 1 << 64 else None


def encode_argument(argument: Argument, name_reference: Refer, text_reference: Refer) -> bytes:
    """Encode an argument.

    Args:
        argument: The argument; its value must match its type.
        name_reference: Returns the reference for a name, and the bytes to write inline.
        text_reference: Returns the reference for a text value, and the bytes to write inline.
    """
    name, inline = name_reference(argument.name)
    high, value = _encoded(argument, text_reference)
    words = 1 + (len(inline) + len(value)) // fxt.WORD_BYTES
    header = argument.type | words << 4 | name << 16 | high << 32
    return _WORD.pack(header & _MASK64) + inline + value


def _encoded(argument: Argument, text_reference: Refer) -> tuple[int, bytes]:
    """Return the upper half of an argument's header, and the bytes of its value."""
    _, kind, value = argument
    if isinstance(value, str):
        return text_reference(value)
    if isinstance(value, bytes):
        return len(value), value.ljust(fxt.padded(len(value)), b"\0")
    if kind == fxt.DOUBLE:
        return 0, _DOUBLE.pack(value)
    if value is None:
        return 0, b""
    number = int(value)
    if kind in (fxt.INT32, fxt.UINT32, fxt.BOOL):
        return number & 0xFFFF_FFFF, b""
    return 0, _WORD.pack(number & _MASK64)
