"""Decodes arrays and vectors."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

from stretto_fidl.codec.checks import check_depth, is_uint8
from stretto_fidl.codec.decoding.plan import Decoder, Value, check_padding, makes, value_of
from stretto_fidl.codec.decoding.values import is_present, maker, plain
from stretto_fidl.codec.layout import PRESENT, layout
from stretto_fidl.codec.types import UNBOUNDED, Array, Primitive, Type, Vector, resolve
from stretto_fidl.codec.wire_error import (
    COUNT_EXCEEDS_LIMIT,
    NON_EMPTY_VECTOR_WITH_NULL_BODY,
    VECTOR_COUNT_EXCEEDS_32_BIT_LIMIT,
    WireError,
)


@makes(Array)
def _array(type_: Array, _optional: bool, wire: int) -> Value:
    if is_uint8(type_.element):
        return plain
    inner, shape, count = value_of(type_.element, wire), layout(type_.element, wire), type_.count
    step, size = shape.items, shape.size
    if inner is plain:
        return lambda items, index, _decoder, _depth: list(items[index : index + count])

    def value(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        values = []
        for each in range(count):
            try:
                values.append(inner(items, index + each * step, decoder, depth))
            except WireError as error:
                error.add_step(f"[{each}]", each * size)
                raise
        return values

    return value


Body = Callable[[int, Decoder, int], Any]
"""Reads a number of elements, at a depth."""


@makes(Vector)
def _vector(type_: Vector, _optional: bool, wire: int) -> Value:
    bound, optional = type_.bound, type_.optional
    made: list[Body] = []

    def value(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        count, presence = items[index], items[index + 1]
        if presence != PRESENT:
            if count and not presence:
                problem = f"{count} elements of an absent vector"
                raise WireError(NON_EMPTY_VECTOR_WITH_NULL_BODY, problem)
            if not is_present(presence, "a vector", optional):
                return None
        if count > bound:
            if count > UNBOUNDED:
                raise WireError(VECTOR_COUNT_EXCEEDS_32_BIT_LIMIT, f"{count} elements")
            raise WireError(COUNT_EXCEEDS_LIMIT, f"{count} elements, {bound} are allowed")
        check_depth(depth + 1)
        if not made:
            made.append(_body(type_.element, wire))
        return made[0](count, decoder, depth + 1)

    return value


def _body(element: Type, wire: int) -> Body:
    primitive, _ = resolve(element)
    if isinstance(primitive, Primitive) and primitive.name != "bool":
        return _bytes if primitive.name == "uint8" else _numbers(primitive)
    return _objects(element, wire)


def _bytes(count: int, decoder: Decoder, _depth: int) -> bytes:
    start = decoder.claim(count)
    return decoder.data[start : start + count]


def _numbers(type_: Primitive) -> Body:
    code, size = type_.code, type_.size

    def body(count: int, decoder: Decoder, _depth: int) -> Any:
        start = decoder.claim(count * size)
        return list(struct.unpack_from(f"<{count}{code}", decoder.data, start))

    return body


def _objects(element: Type, wire: int) -> Body:
    shape, inner = layout(element, wire), value_of(element, wire)
    packer, size = struct.Struct(f"<{shape.format}"), shape.size

    make = None if shape.padding else maker(element)

    def body(count: int, decoder: Decoder, depth: int) -> Any:
        start = decoder.claim(count * size)
        data = decoder.data[start : start + count * size]
        if make is not None:
            return list(starmap(make, packer.iter_unpack(data)))
        values = []
        for index, items in enumerate(packer.iter_unpack(data)):
            try:
                if shape.padding:
                    check_padding(data[index * size : (index + 1) * size], shape)
                values.append(inner(items, 0, decoder, depth))
            except WireError as error:
                error.add_base(start + index * size)
                error.add_step(f"[{index}]")
                raise
        return values

    return body
