"""Checks of values against types.

Constructors of the bindings check a value before they store it. If the module `struct` refuses to
pack a value, the encoder checks the value to find the reason. Only the encoder checks the contents
of lists and objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stretto.base.excerpts import SENSITIVE
from stretto_fidl.codec.handle import Handle
from stretto_fidl.codec.types import (
    Array,
    Bits,
    Enum,
    HandleType,
    Named,
    Primitive,
    String,
    StringArray,
    Struct,
    Type,
    Vector,
    resolve,
)
from stretto_fidl.codec.wire_error import (
    EXCEEDED_MAX_OUT_OF_LINE_DEPTH,
    NON_NULLABLE_TYPE_WITH_NULL_VALUE,
    VALUE_OUT_OF_RANGE,
    WRONG_TYPE,
    WireError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = (bytes, bytearray, memoryview)
SEQUENCES = (list, tuple)

MAX_DEPTH: Final = 32
"""The maximum number of out-of-line objects around an object."""

FLOAT32_END = float.fromhex("0x1.ffffffp+127")
"""The first number that is infinite as a float32."""


def check_depth(depth: int) -> None:
    """Raise WireError if an object is nested in more than `MAX_DEPTH` out-of-line objects."""
    if depth > MAX_DEPTH:
        problem = f"more than {MAX_DEPTH} steps out of line"
        raise WireError(EXCEEDED_MAX_OUT_OF_LINE_DEPTH, problem)


def absent(type_: str) -> WireError:
    """Return the error for None in place of a required value."""
    return WireError(NON_NULLABLE_TYPE_WITH_NULL_VALUE, f"{type_} is required, and absent")


def wrong_type(value: object, expected: str) -> WireError:
    """Return the error for a value of the wrong Python type."""
    if value is None:
        return absent(expected)
    return WireError(WRONG_TYPE, f"{expected} is expected, not a {type(value).__name__}")


def describe(type_: Type) -> str:
    """Describe a FIDL type and the Python type of its values, for error messages."""
    type_, _ = resolve(type_)
    match type_:
        case Primitive(name="bool"):
            return "a bool"
        case Primitive(low=None):
            return f"a {type_.name} (a float)"
        case Primitive():
            return f"a {type_.name} (an int)"
        case String() | StringArray():
            return "a string"
        case Vector(element=element) | Array(element=element):
            what = "bytes" if is_uint8(element) else "a list"
            return f"{'a vector' if isinstance(type_, Vector) else 'an array'} ({what})"
        case HandleType():
            return "a handle"
        case Named():
            return f"a {type_.short_name}"
    return type(type_).__name__


def is_uint8(type_: Type) -> bool:
    """Return whether a type is uint8. The values of vectors of uint8 are of type `bytes`."""
    type_, _ = resolve(type_)
    return isinstance(type_, Primitive) and type_.name == "uint8"


def is_optional(type_: Type) -> bool:
    """Return whether None is a value of a type."""
    _, optional = resolve(type_)
    return optional or getattr(type_, "optional", False)


def check_primitive(type_: Primitive, value: Any) -> None:
    """Check that a value can be packed as a primitive.

    Raises:
        WireError: The value can't be packed.
    """
    if type_.name == "bool":
        if value is not True and value is not False:
            raise wrong_type(value, "a bool")
    elif type_.low is None or type_.high is None:
        if not isinstance(value, (float, int)):
            raise wrong_type(value, describe(type_))
        limit = FLOAT32_END if type_.name == "float32" else None
        if limit and limit <= abs(value) < float("inf"):
            raise WireError(VALUE_OUT_OF_RANGE, f"{value} is too large for a float32")
    elif not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(value, describe(type_))
    elif not type_.low <= value <= type_.high:
        raise WireError(VALUE_OUT_OF_RANGE, f"{value} is not in {type_.low} … {type_.high}")


def check_number(type_: Enum, value: Any) -> None:
    """Check that a value can be packed as an enum or bits.

    Raises:
        WireError: The value can't be packed.
    """
    try:
        check_primitive(type_.underlying, value)
    except WireError as error:
        if type_.sensitive:
            error.hide()
        raise


def checker(type_: Type) -> Callable[[Any], None]:
    """Return a function that checks a value of a type, but not the value's contents.

    The function raises `WireError`.
    """
    if is_optional(type_):
        required = _required(type_)

        def check(value: Any) -> None:
            if value is not None:
                required(value)

        return check
    return _required(type_)


def _required(type_: Type) -> Callable[[Any], None]:
    type_, _ = resolve(type_)
    match type_:
        case Primitive():
            primitive = type_
            return lambda value: check_primitive(primitive, value)
        case Enum():
            enum = type_
            return lambda value: check_number(enum, value)
        case String() | StringArray():
            return _instance(type_, str)
        case Vector(element=element) | Array(element=element):
            kinds = SEQUENCES + BYTES if is_uint8(element) else SEQUENCES
            return _instance(type_, *kinds)
        case HandleType():
            return _instance(type_, Handle)
        case Struct():
            return _instance(type_, type_.cls)
    raise TypeError(f"no check for {type_!r}")


def _instance(type_: Type, *kinds: type) -> Callable[[Any], None]:
    expected = describe(type_)

    def check(value: Any) -> None:
        if not isinstance(value, kinds):
            raise wrong_type(value, expected)

    return check


def check_enum(type_: Enum, value: int) -> str | None:
    """Return the error of a number that isn't a valid enum or bits value; None if it is valid."""
    if not type_.strict:
        return None
    if isinstance(type_, Bits):
        extra = value & ~type_.mask
        shown = SENSITIVE if type_.sensitive else f"{extra:#x}"
        return f"{type_.short_name} has no bit {shown}" if extra else None
    if value in type_.values.values():
        return None
    return f"{type_.short_name} has no value {SENSITIVE if type_.sensitive else value}"
