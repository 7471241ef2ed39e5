"""Decodes all values except sequences, and except values that have envelopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto_fidl.codec.checks import absent, check_depth, check_enum, describe
from stretto_fidl.codec.decoding.plan import Decoder, Value, later, makes, value_of
from stretto_fidl.codec.layout import HANDLE_PRESENT, PRESENT, layout
from stretto_fidl.codec.types import (
    UNBOUNDED,
    Bits,
    Endpoint,
    Enum,
    HandleType,
    Primitive,
    String,
    StringArray,
    Struct,
    Table,
    Type,
    Union,
    resolve,
)
from stretto_fidl.codec.wire_error import (
    INVALID_BOOLEAN,
    INVALID_EMPTY_STRUCT,
    INVALID_HANDLE_PRESENCE_INDICATOR,
    INVALID_PADDING_BYTE,
    INVALID_PRESENCE_INDICATOR,
    NON_EMPTY_STRING_WITH_NULL_BODY,
    STRICT_BITS_UNKNOWN_BIT,
    STRICT_ENUM_UNKNOWN_VALUE,
    STRING_COUNT_EXCEEDS_32_BIT_LIMIT,
    STRING_NOT_UTF8,
    STRING_TOO_LONG,
    WireError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def plain(items: Sequence[Any], index: int, _decoder: Decoder, _depth: int) -> Any:
    return items[index]


def _boolean(items: Sequence[Any], index: int, _decoder: Decoder, _depth: int) -> bool:
    item = items[index]
    if item > 1:
        raise WireError(INVALID_BOOLEAN, f"a bool is 0 or 1, not {item}")
    return bool(item)


@makes(Primitive)
def _primitive(type_: Primitive, _optional: bool, _wire: int) -> Value:
    return _boolean if type_.name == "bool" else plain


@makes(Enum, Bits)
def _enum(type_: Enum, _optional: bool, _wire: int) -> Value:
    code = STRICT_BITS_UNKNOWN_BIT if isinstance(type_, Bits) else STRICT_ENUM_UNKNOWN_VALUE
    cls = type_.cls
    known = {number: cls(number) for number in type_.values.values()}

    def value(items: Sequence[Any], index: int, _decoder: Decoder, _depth: int) -> Any:
        number = items[index]
        found = known.get(number)
        if found is not None:
            return found
        if problem := check_enum(type_, number):
            raise WireError(code, problem)
        return cls(number)

    return value


@makes(HandleType, Endpoint)
def _handle(type_: HandleType, _optional: bool, _wire: int) -> Value:
    object_type, rights, optional = type_.object_type, type_.rights, type_.optional

    def value(items: Sequence[Any], index: int, decoder: Decoder, _depth: int) -> Any:
        presence = items[index]
        if presence == HANDLE_PRESENT:
            return decoder.take(object_type, rights)
        if presence:
            problem = f"a handle's presence is {presence:#x}"
            raise WireError(INVALID_HANDLE_PRESENCE_INDICATOR, problem)
        if not optional:
            raise absent("a handle")
        return None

    return value


def is_present(presence: int, what: str, optional: bool) -> bool:
    """Return whether a value is present.

    Raises:
        WireError: The presence marker is invalid, or a required value is absent.
    """
    if presence == PRESENT:
        return True
    if presence:
        raise WireError(INVALID_PRESENCE_INDICATOR, f"the presence of {what} is {presence:#x}")
    if not optional:
        raise absent(what)
    return False


@makes(String)
def _string(type_: String, _optional: bool, _wire: int) -> Value:
    bound, optional = type_.bound, type_.optional

    def value(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        size, presence = items[index], items[index + 1]
        if presence != PRESENT:
            if size and not presence:
                problem = f"{size} bytes of an absent string"
                raise WireError(NON_EMPTY_STRING_WITH_NULL_BODY, problem)
            if not is_present(presence, "a string", optional):
                return None
        if size > bound:
            if size > UNBOUNDED:
                raise WireError(STRING_COUNT_EXCEEDS_32_BIT_LIMIT, f"{size} bytes of text")
            raise WireError(STRING_TOO_LONG, f"{size} bytes of text, {bound} are allowed")
        check_depth(depth + 1)
        start = decoder.claim(size)
        return _text(decoder.data[start : start + size], start)

    return value


def _text(data: bytes, start: int | None = None) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = None if start is None else start + error.start
        raise WireError(STRING_NOT_UTF8, f"not UTF-8: {error.reason}", at) from None


@makes(StringArray)
def _string_arrays(_type: StringArray, _optional: bool, _wire: int) -> Value:
    return _string_array


def _string_array(items: Sequence[Any], index: int, _decoder: Decoder, _depth: int) -> str:
    data = items[index].rstrip(b"\0")
    if 0 in data:
        raise WireError(INVALID_PADDING_BYTE, "a text goes on after its end")
    return _text(data)


def _box(type_: Struct, wire: int) -> Value:
    read, what = later(type_, wire), describe(type_)

    def value(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        if items[index] != PRESENT and not is_present(items[index], what, True):
            return None
        return read(decoder, depth + 1)

    return value


def maker(type_: Type) -> Callable[..., Any] | None:
    """Return a function that makes a struct from its unpacked items.

    Return None if some item has to be converted to the value of its member.
    """
    type_, optional = resolve(type_)
    if optional or not isinstance(type_, Struct) or isinstance(type_, (Table, Union)):
        return None
    members = [resolve(member.type)[0] for member in type_.members]
    plain_only = all(isinstance(m, Primitive) and m.name != "bool" for m in members)
    found: Callable[..., Any] = type_.cls._make
    return found if members and plain_only else None


@makes(Struct)
def _struct(type_: Struct, optional: bool, wire: int) -> Value:
    if optional:
        return _box(type_, wire)
    make, members, hidden = type_.cls._make, [], type_.hidden
    if not type_.members:
        return _empty(make)
    at = 0
    for member, offset in zip(type_.members, layout(type_, wire).offsets, strict=True):
        inner = value_of(member.type, wire)
        members.append((member.name, offset, at, None if inner is plain else inner))
        at += layout(member.type, wire).items
    count = at
    if maker(type_) is not None:
        return lambda items, index, _decoder, _depth: make(*items[index : index + count])

    def value(items: Sequence[Any], index: int, decoder: Decoder, depth: int) -> Any:
        values = []
        for name, offset, at, inner in members:
            if inner is None:
                values.append(items[index + at])
                continue
            try:
                values.append(inner(items, index + at, decoder, depth))
            except WireError as error:
                error.add_step(name, offset, hidden=name in hidden)
                raise
        return make(*values)

    return value


def _empty(make: Callable[[], Any]) -> Value:
    def value(items: Sequence[Any], index: int, _decoder: Decoder, _depth: int) -> Any:
        if items[index]:
            raise WireError(INVALID_EMPTY_STRUCT, "the byte of an empty struct isn't zero")
        return make()

    return value
