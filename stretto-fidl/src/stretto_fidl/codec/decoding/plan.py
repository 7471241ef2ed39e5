"""Decodes bytes to values, in wire formats v2 and v1.

As in `encoding`, each type is compiled once to closures. To decode an object, a closure checks that
enough bytes remain and that all padding is zero, unpacks the object in one call, makes the values
of its members in order, and reads the out-of-line objects of these members.

The peer may be hostile. The decoder allocates no memory for a count unless the message has that
many bytes left. The depth of values is limited, and bytes left over are an error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stretto_fidl.codec.checks import check_depth
from stretto_fidl.codec.layout import V2, Layout, aligned, layout
from stretto_fidl.codec.types import Type, resolve
from stretto_fidl.codec.wire_error import (
    INVALID_PADDING_BYTE,
    TOO_FEW_BYTES,
    TOO_FEW_HANDLES,
    WireError,
)

if TYPE_CHECKING:
    from stretto_fidl.codec.handle import Handle


class Decoder:
    """The state of decoding one message.

    Attributes:
        data: The whole message.
        next: The offset of the next object.
        handles: All handles of the message.
        next_handle: The number of handles that values have taken so far.
    """

    __slots__ = ("data", "handles", "next", "next_handle")

    def __init__(self, data: bytes, handles: Sequence[Handle] = (), start: int = 0) -> None:
        self.data = data
        self.next = start
        self.handles = handles
        self.next_handle = 0

    def claim(self, size: int) -> int:
        """Return the offset of the next object, and advance past that object."""
        start, data = self.next, self.data
        end = start + (size + 7 & -8)
        if end > len(data):
            missing = end - len(data)
            raise WireError(TOO_FEW_BYTES, f"{missing} bytes are missing", len(data))
        if size & 7 and any(data[start + size : end]):
            raise WireError(INVALID_PADDING_BYTE, "padding isn't zero", start + size)
        self.next = end
        return start

    def take(self, object_type: int, rights: int) -> Handle:
        """Return the next handle of the message after a check of its type and rights."""
        if self.next_handle >= len(self.handles):
            raise WireError(TOO_FEW_HANDLES, "there is no handle left")
        handle = self.handles[self.next_handle]
        handle.check(object_type, rights)
        self.next_handle += 1
        return handle

    def drop(self, count: int) -> None:
        """Skip the next `count` handles, and close them."""
        for handle in self.handles[self.next_handle : self.next_handle + count]:
            handle.close()
        self.next_handle += count


Value = Callable[[Sequence[Any], int, Decoder, int], Any]
"""Makes a value from the items that begin at an index; reads its out-of-line objects."""
Read = Callable[[Decoder, int], Any]
"""Reads the next object, at a depth."""


def reader(type_: Type, wire: int = V2) -> Read:
    """Return a function that reads a value of a type from the next object."""
    type_, _ = resolve(type_)
    key = "read", wire
    found: Read | None = type_.plans.get(key)
    if found is None:
        found = type_.plans[key] = _object(type_, wire)
    return found


def primary(type_: Type, wire: int) -> tuple[int, Read]:
    """Return the aligned size of a type's inline part, and a function that reads a value."""
    key = "primary", wire
    found: tuple[int, Read] | None = type_.plans.get(key)
    if found is None:
        found = type_.plans[key] = aligned(layout(type_, wire).size), reader(type_, wire)
    return found


def later(type_: Type, wire: int) -> Read:
    """Return a function that decodes a value. Its first call makes the decoder, by `reader`."""
    made: list[Read] = []

    def read(decoder: Decoder, depth: int) -> Any:
        if not made:
            made.append(reader(type_, wire))
        return made[0](decoder, depth)

    return read


def _object(type_: Type, wire: int) -> Read:
    shape, value = layout(type_, wire), value_of(type_, wire)
    unpack_from, size = struct.Struct(f"<{shape.format}").unpack_from, shape.size

    def read(decoder: Decoder, depth: int) -> Any:
        check_depth(depth)
        start = decoder.claim(size)
        try:
            if shape.padding:
                check_padding(decoder.data[start : start + size], shape)
            return value(unpack_from(decoder.data, start), 0, decoder, depth)
        except WireError as error:
            error.add_base(start)
            raise

    return read


def check_padding(data: bytes, shape: Layout) -> None:
    for offset, length in shape.padding:
        if any(data[offset : offset + length]):
            error = WireError(INVALID_PADDING_BYTE, "padding isn't zero")
            error.offset = offset
            raise error


Maker = Callable[[Any, bool, int], Value]
"""Compiles the decoder of a type, given whether the type is optional, and the wire format."""

MAKERS: dict[type[Type], Maker] = {}


def makes(*kinds: type[Type]) -> Callable[[Maker], Maker]:
    """Return a decorator for a function that compiles the decoders of some kinds of types."""

    def register(maker: Maker) -> Maker:
        MAKERS.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def value_of(type_: Type, wire: int) -> Value:
    """Return a function that makes a value of a type from the unpacked items of its inline part."""
    type_, optional = resolve(type_)
    key = "value", wire, optional
    found: Value | None = type_.plans.get(key)
    if found is None:
        found = type_.plans[key] = MAKERS[type(type_)](type_, optional, wire)
    return found
