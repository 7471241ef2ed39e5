"""Encodes all values except sequences and values with envelopes."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from stretto_fidl.codec.checks import (
    absent,
    check_depth,
    check_enum,
    check_primitive,
    describe,
    wrong_type,
)
from stretto_fidl.codec.encoding.plan import (
    PADS,
    Encoder,
    Items,
    is_plain,
    items_of,
    later,
    makes,
)
from stretto_fidl.codec.handle import Handle, HandleDisposition
from stretto_fidl.codec.layout import HANDLE_PRESENT, PRESENT
from stretto_fidl.codec.types import (
    Bits,
    Endpoint,
    Enum,
    HandleType,
    Primitive,
    String,
    StringArray,
    Struct,
)
from stretto_fidl.codec.wire_error import (
    STRICT_BITS_UNKNOWN_BIT,
    STRICT_ENUM_UNKNOWN_VALUE,
    STRING_NOT_UTF8,
    STRING_TOO_LONG,
    WireError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@makes(Primitive)
def _primitive(type_: Primitive, _optional: bool) -> Items:
    if type_.name == "bool":

        def boolean(value: Any, _encoder: Encoder, _depth: int) -> Sequence[Any]:
            if value is not True and value is not False:
                raise wrong_type(value, "a bool")
            return (value,)

        return boolean
    return lambda value, _encoder, _depth: (value,)


@makes(Enum, Bits)
def _enum(type_: Enum, _optional: bool) -> Items:
    code = STRICT_BITS_UNKNOWN_BIT if isinstance(type_, Bits) else STRICT_ENUM_UNKNOWN_VALUE
    cls = type_.cls

    def items(value: Any, _encoder: Encoder, _depth: int) -> Sequence[Any]:
        if value.__class__ is not cls:
            check_primitive(type_.underlying, value)
        if problem := check_enum(type_, value):
            raise WireError(code, problem)
        return (value,)

    return items


@makes(HandleType, Endpoint)
def _handle(type_: HandleType, _optional: bool) -> Items:
    object_type, rights, optional = type_.object_type, type_.rights, type_.optional

    def items(value: Any, encoder: Encoder, _depth: int) -> Sequence[Any]:
        if value is None:
            if not optional:
                raise absent("a handle")
            return (0,)
        if not isinstance(value, Handle):
            raise wrong_type(value, "a handle")
        _ = value.fd
        encoder.handles.append(HandleDisposition(value, object_type, rights))
        return (HANDLE_PRESENT,)

    return items


@makes(String)
def _string(type_: String, _optional: bool) -> Items:
    bound, optional = type_.bound, type_.optional

    def items(value: Any, encoder: Encoder, depth: int) -> Sequence[Any]:
        if value.__class__ is not str and not isinstance(value, str):
            if value is None and optional:
                return (0, 0)
            raise wrong_type(value, "a string")
        data = _utf8(value)
        size = len(data)
        if size > bound:
            raise WireError(STRING_TOO_LONG, f"{size} bytes of text, {bound} are allowed")
        check_depth(depth + 1)
        encoder.out.extend(data)
        encoder.out.extend(PADS[size & 7])
        return (size, PRESENT)

    return items


def _utf8(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        problem = f"character {error.start} is a surrogate, which UTF-8 can't express"
        raise WireError(STRING_NOT_UTF8, problem) from None


@makes(StringArray)
def _string_array(type_: StringArray, _optional: bool) -> Items:
    count = type_.count

    def items(value: Any, _encoder: Encoder, _depth: int) -> Sequence[Any]:
        if not isinstance(value, str):
            raise wrong_type(value, "a string")
        data = _utf8(value)
        if len(data) > count:
            raise WireError(STRING_TOO_LONG, f"{len(data)} bytes of text, {count} are allowed")
        return (data,)

    return items


def _box(type_: Struct) -> Items:
    write = later(type_)

    def items(value: Any, encoder: Encoder, depth: int) -> Sequence[Any]:
        if value is None:
            return (0,)
        write(value, encoder, depth + 1)
        return (PRESENT,)

    return items


@makes(Struct)
def _struct(type_: Struct, optional: bool) -> Items:
    if optional:
        return _box(type_)
    cls, expected, hidden = type_.cls, describe(type_), type_.hidden
    names = [member.python_name for member in type_.members]
    if all(is_plain(member.type) for member in type_.members):
        return _plain_struct(cls, expected, names)
    members = [
        (m.name, attrgetter(m.python_name), None if is_plain(m.type) else items_of(m.type))
        for m in type_.members
    ]

    def items(value: Any, encoder: Encoder, depth: int) -> Sequence[Any]:
        if value.__class__ is not cls:
            raise wrong_type(value, expected)
        result: list[Any] = []
        for name, get, inner in members:
            if inner is None:
                result.append(get(value))
                continue
            try:
                result += inner(get(value), encoder, depth)
            except WireError as error:
                error.add_step(name, hidden=name in hidden)
                raise
        return result

    return items


def _plain_struct(cls: type, expected: str, names: list[str]) -> Items:
    get: Callable[[Any], Sequence[Any]]
    if len(names) > 1:
        get = attrgetter(*names)
    elif names:
        one = attrgetter(names[0])
        get = lambda value: (one(value),)  # noqa: E731
    else:
        get = lambda _value: (0,)  # noqa: E731

    def items(value: Any, _encoder: Encoder, _depth: int) -> Sequence[Any]:
        if value.__class__ is not cls:
            raise wrong_type(value, expected)
        return get(value)

    return items
