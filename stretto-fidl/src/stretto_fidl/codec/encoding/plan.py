"""Encodes values to bytes, in wire format v2.

A type is compiled once to closures. An object is the value itself, or a part of it that lies out of
line. One call of a `struct.Struct` packs an object from the items of its members (see `layout`).
While an object's items are made, its out-of-line objects are written, so that bytes and handles are
in the order of a depth-first traversal:

    write(object)    reserve room ─▶ items of each member ─▶ pack
                                         │ out of line: write(object), deeper

The closure for an out-of-line object is compiled at its first use, because a type may contain
itself out of line.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from stretto_fidl.codec.checks import check_depth, checker
from stretto_fidl.codec.layout import aligned, layout
from stretto_fidl.codec.types import Array, Primitive, Struct, Table, Type, Union, resolve
from stretto_fidl.codec.wire_error import (
    VALUE_OUT_OF_RANGE,
    WireError,
)

if TYPE_CHECKING:
    from stretto_fidl.codec.handle import HandleDisposition

PADS: Final = [bytes(-size % 8) for size in range(8)]
"""The padding after an object, by its size modulo 8."""


class Encoder:
    """The bytes and handles of a message that is being encoded."""

    __slots__ = ("handles", "out")

    def __init__(self) -> None:
        self.out = bytearray()
        self.handles: list[HandleDisposition] = []


Items = Callable[[Any, Encoder, int], Sequence[Any]]
"""Returns the items of a value's inline part, and writes the value's out-of-line objects."""
Write = Callable[[Any, Encoder, int], None]
"""Appends a value as an object, at a depth."""


def writer(type_: Type) -> Write:
    """Return a function that encodes a value as an object of its own, not as part of another
    object.
    """
    type_, _ = resolve(type_)
    found: Write | None = type_.plans.get("write")
    if found is None:
        found = type_.plans["write"] = _object(type_)
    return found


def later(type_: Type) -> Write:
    """Return a function that encodes a value. The function is compiled at its first call."""
    made: list[Write] = []

    def write(value: Any, encoder: Encoder, depth: int) -> None:
        if not made:
            made.append(writer(type_))
        made[0](value, encoder, depth)

    return write


def _object(type_: Type) -> Write:
    shape, items = layout(type_), items_of(type_)
    packer = struct.Struct(f"<{shape.format}{aligned(shape.size) - shape.size}x")
    size, pack_into = packer.size, packer.pack_into

    def write(value: Any, encoder: Encoder, depth: int) -> None:
        check_depth(depth)
        out = encoder.out
        start = len(out)
        out.extend(bytes(size))
        values = items(value, encoder, depth)
        try:
            pack_into(out, start, *values)
        except (struct.error, OverflowError, TypeError):
            raise refused(type_, value) from None

    return write


def refused(type_: Type, value: Any) -> WireError:
    """Return the error that explains why the struct module has refused to pack a value."""
    try:
        _search(type_, value)
    except WireError as error:
        return error
    return WireError(VALUE_OUT_OF_RANGE, "a number is out of range")


def _search(type_: Type, value: Any) -> None:
    """Check the inline parts of a value."""
    checker(type_)(value)
    type_, _ = resolve(type_)
    if value is None:
        return
    if isinstance(type_, Array):
        steps = [(f"[{index}]", type_.element, inner) for index, inner in enumerate(value)]
    elif isinstance(type_, Struct) and not isinstance(type_, (Table, Union)):
        steps = [(m.name, m.type, getattr(value, m.python_name)) for m in type_.members]
    else:
        return
    hidden = type_.hidden if isinstance(type_, Struct) else ()
    for step, inner_type, inner in steps:
        try:
            _search(inner_type, inner)
        except WireError as error:
            error.add_step(step, hidden=step in hidden)
            raise


Maker = Callable[[Any, bool], Items]
"""Compiles the encoder of a type, given whether the type is optional."""

MAKERS: dict[type[Type], Maker] = {}


def makes(*kinds: type[Type]) -> Callable[[Maker], Maker]:
    """Return a decorator for a function that compiles the encoders of some kinds of types."""

    def register(maker: Maker) -> Maker:
        MAKERS.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def items_of(type_: Type) -> Items:
    """Return a function that returns the items of a value's inline part."""
    type_, optional = resolve(type_)
    key = "items", optional
    found: Items | None = type_.plans.get(key)
    if found is None:
        found = type_.plans[key] = MAKERS[type(type_)](type_, optional)
    return found


def is_plain(type_: Type) -> bool:
    """Return whether a value is packed unchanged as one item of a `struct.Struct`.

    Packing then checks the value.
    """
    type_, _ = resolve(type_)
    return isinstance(type_, Primitive) and type_.name != "bool"
