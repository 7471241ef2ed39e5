"""Encodes arrays and vectors."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from stretto_fidl.codec.checks import BYTES, SEQUENCES, check_depth, describe, is_uint8, wrong_type
from stretto_fidl.codec.encoding.plan import (
    PADS,
    Encoder,
    Items,
    is_plain,
    items_of,
    makes,
    refused,
)
from stretto_fidl.codec.layout import PRESENT, aligned, layout
from stretto_fidl.codec.types import Array, Primitive, Type, Vector, resolve
from stretto_fidl.codec.wire_error import (
    ARRAY_COUNT_MISMATCH,
    COUNT_EXCEEDS_LIMIT,
    VALUE_OUT_OF_RANGE,
    WireError,
)


@makes(Array)
def _array(type_: Array, _optional: bool) -> Items:
    count, expected = type_.count, describe(type_)
    as_bytes, plain = is_uint8(type_.element), is_plain(type_.element)
    inner = items_of(type_.element)

    def items(value: Any, encoder: Encoder, depth: int) -> Sequence[Any]:
        if as_bytes:
            value = _bytes(value, expected)
        elif not isinstance(value, SEQUENCES):
            raise wrong_type(value, expected)
        if len(value) != count:
            problem = f"{len(value)} elements, there must be {count}"
            raise WireError(ARRAY_COUNT_MISMATCH, problem)
        if as_bytes:
            return (value,)
        return value if plain else _elements(value, inner, encoder, depth)

    return items


def _elements(values: Sequence[Any], inner: Items, encoder: Encoder, depth: int) -> list[Any]:
    """Return the items of all elements in one list, for a `struct.Struct`."""
    result: list[Any] = []
    for index, value in enumerate(values):
        try:
            result += inner(value, encoder, depth)
        except WireError as error:
            error.add_step(f"[{index}]")
            raise
    return result


def _bytes(value: Any, expected: str) -> bytes:
    """Return the bytes of a sequence of uint8."""
    if isinstance(value, BYTES):
        return bytes(value)
    if not isinstance(value, SEQUENCES):
        raise wrong_type(value, expected)
    try:
        return bytes(value)
    except (ValueError, TypeError):
        raise WireError(VALUE_OUT_OF_RANGE, "an element is not a byte") from None


Body = Callable[[Any, Encoder, int], None]
"""Appends the elements of a vector, whose number has been checked."""


@makes(Vector)
def _vector(type_: Vector, _optional: bool) -> Items:
    bound, optional, expected = type_.bound, type_.optional, describe(type_)
    as_bytes = is_uint8(type_.element)
    kinds = SEQUENCES + BYTES if as_bytes else SEQUENCES
    made: list[Body] = []

    def items(value: Any, encoder: Encoder, depth: int) -> Sequence[Any]:
        if not isinstance(value, kinds):
            if value is None and optional:
                return (0, 0)
            raise wrong_type(value, expected)
        if as_bytes:
            value = _bytes(value, expected)
        count = len(value)
        if count > bound:
            raise WireError(COUNT_EXCEEDS_LIMIT, f"{count} elements, {bound} are allowed")
        if not made:
            made.append(_body(type_.element))
        check_depth(depth + 1)
        made[0](value, encoder, depth + 1)
        return (count, PRESENT)

    return items


def _body(element: Type) -> Body:
    if is_uint8(element):
        return _append_bytes
    if is_plain(element):
        primitive, _ = resolve(element)
        assert isinstance(primitive, Primitive)
        return _numbers(primitive)
    return _objects(element)


def _append_bytes(value: bytes, encoder: Encoder, _depth: int) -> None:
    encoder.out.extend(value)
    encoder.out.extend(PADS[len(value) & 7])


def _numbers(type_: Primitive) -> Body:
    def body(value: Any, encoder: Encoder, _depth: int) -> None:
        try:
            data = struct.pack(f"<{len(value)}{type_.code}", *value)
        except (struct.error, OverflowError, TypeError):
            raise refused(Array(type_, len(value)), value) from None
        _append_bytes(data, encoder, _depth)

    return body


def _objects(element: Type) -> Body:
    shape, inner = layout(element), items_of(element)
    packer = struct.Struct(f"<{shape.format}")
    size, pack_into = packer.size, packer.pack_into

    def body(value: Any, encoder: Encoder, depth: int) -> None:
        out, at = encoder.out, len(encoder.out)
        out.extend(bytes(aligned(size * len(value))))
        for index, each in enumerate(value):
            try:
                values = inner(each, encoder, depth)
                try:
                    pack_into(out, at, *values)
                except (struct.error, OverflowError, TypeError):
                    raise refused(element, each) from None
            except WireError as error:
                error.add_step(f"[{index}]")
                raise
            at += size

    return body
