"""Computes inline layouts: sizes, alignments, padding, and formats for the module `struct`.

The inline part of a value becomes one or more items of a `struct.Struct`, so that one call
packs or unpacks a whole object:

    bool, numbers, enums, bits   1 item
    handle                       1 item, presence
    string, vector, table        2 items, count and presence
    box                          1 item, presence
    union                        ordinal and envelope: 2 items in v2, 4 in v1
    struct, array                the items of their members or elements

The wire formats differ in envelopes only: 8 bytes in v2, where values of up to 4
bytes are inlined, and 16 bytes in v1.
"""

from __future__ import annotations

import struct
from typing import Final

from stretto_fidl.codec.types import (
    Array,
    Enum,
    HandleType,
    Primitive,
    String,
    StringArray,
    Struct,
    Table,
    Type,
    Union,
    Vector,
    resolve,
)

V1: Final = 1
V2: Final = 2
ALIGNMENT: Final = 8
"""The alignment of objects, in bytes."""
PRESENT: Final = 0xFFFFFFFFFFFFFFFF
HANDLE_PRESENT: Final = 0xFFFFFFFF
INLINE_SIZE: Final = 4
"""The size in bytes of the largest value that an envelope of v2 inlines."""

_UNION_FORMATS = {V1: "QIIQ", V2: "QQ"}


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """Round a size up to a multiple of an alignment."""
    return (size + alignment - 1) & -alignment


class Layout:
    """The layout of the inline part of a type's values.

    Attributes:
        format: The format for the struct module, without byte order.
        items: The number of values in the format.
        size: The size in bytes, a multiple of the alignment.
        alignment: The alignment in bytes.
        padding: The offset and the length of each gap, in bytes.
        offsets: The offsets of a struct's members, in bytes.
    """

    __slots__ = ("alignment", "format", "items", "offsets", "padding", "size")

    def __init__(
        self,
        format_: str,
        items: int,
        alignment: int,
        padding: tuple[tuple[int, int], ...] = (),
        offsets: tuple[int, ...] = (),
    ) -> None:
        self.format, self.items, self.alignment = format_, items, alignment
        self.padding, self.offsets = padding, offsets
        self.size = struct.calcsize(f"<{format_}")


def layout(type_: Type, wire: int = V2) -> Layout:
    """Return the layout of a type in a wire format, `V1` or `V2`."""
    type_, optional = resolve(type_)
    key = "layout", wire, optional
    found: Layout | None = type_.plans.get(key)
    if found is None:
        found = type_.plans[key] = _lay_out(type_, optional, wire)
    return found


def _lay_out(type_: Type, optional: bool, wire: int) -> Layout:
    match type_:
        case Primitive():
            return Layout(type_.code, 1, type_.size)
        case Enum():
            return layout(type_.underlying, wire)
        case HandleType():
            return Layout("I", 1, 4)
        case String() | Vector() | Table():
            return Layout("QQ", 2, 8)
        case Union():
            return Layout(_UNION_FORMATS[wire], len(_UNION_FORMATS[wire]), 8)
        case Struct():
            return Layout("Q", 1, 8) if optional else _struct(type_, wire)
        case StringArray():
            return Layout(f"{type_.count}s", 1, 1)
        case Array():
            return _array(type_, wire)
    raise TypeError(f"no layout for {type_!r}")


def _struct(type_: Struct, wire: int) -> Layout:
    if not type_.members:
        return Layout("B", 1, 1)
    parts: list[str] = []
    offsets: list[int] = []
    padding: list[tuple[int, int]] = []
    end = items = 0
    alignment = 1

    def pad(to: int) -> int:
        gap = aligned(end, to) - end
        if gap:
            padding.append((end, gap))
            parts.append(f"{gap}x")
        return end + gap

    for member in type_.members:
        inner = layout(member.type, wire)
        end = pad(inner.alignment)
        padding += [(end + offset, length) for offset, length in inner.padding]
        offsets.append(end)
        parts.append(inner.format)
        items += inner.items
        alignment = max(alignment, inner.alignment)
        end += inner.size
    pad(alignment)
    return Layout("".join(parts), items, alignment, tuple(padding), tuple(offsets))


def _array(type_: Array, wire: int) -> Layout:
    element, _ = resolve(type_.element)
    if isinstance(element, Primitive):
        if element.name == "uint8":
            return Layout(f"{type_.count}s", 1, 1)
        return Layout(f"{type_.count}{element.code}", type_.count, element.size)
    inner = layout(type_.element, wire)
    padding = tuple(
        (index * inner.size + offset, length)
        for index in range(type_.count)
        for offset, length in inner.padding
    )
    return Layout(inner.format * type_.count, inner.items * type_.count, inner.alignment, padding)
