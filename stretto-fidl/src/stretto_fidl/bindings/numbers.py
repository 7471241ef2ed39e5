"""The base classes of generated enums and bits, which are subclasses of int.

Each member is an attribute of its class. The constructor of a strict enum or bits refuses
a number that is no member; a flexible enum or bits accepts it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from stretto.base.excerpts import SENSITIVE
from stretto_fidl.codec import types
from stretto_fidl.codec.checks import check_enum, check_number
from stretto_fidl.codec.wire_error import (
    STRICT_BITS_UNKNOWN_BIT,
    STRICT_ENUM_UNKNOWN_VALUE,
    WireError,
)
from stretto_fidl.python_names import OF_NUMBERS, python_name


def number_name(name: str) -> str:
    """Return the name of the class attribute for a member."""
    return python_name(name, OF_NUMBERS)


class Enum(int):
    """An enum value. A strict enum accepts only its members, a flexible enum accepts any value."""

    TYPE: ClassVar[types.Enum]
    _REFUSED = STRICT_ENUM_UNKNOWN_VALUE

    def __init_subclass__(cls) -> None:
        if "TYPE" in cls.__dict__:
            cls.TYPE.cls = cls
            for name, value in cls.TYPE.values.items():
                setattr(cls, number_name(name), int.__new__(cls, value))

    def __new__(cls, value: int) -> Self:
        check_number(cls.TYPE, value)
        if problem := check_enum(cls.TYPE, value):
            raise WireError(cls._REFUSED, problem)
        return int.__new__(cls, value)

    @property
    def name(self) -> str | None:
        """The name of the value; None if it is not one of the members."""
        for name, value in self.TYPE.values.items():
            if value == self:
                return name
        return None

    @property
    def is_unknown(self) -> bool:
        """Whether the value is not one of the enum's members."""
        return check_enum(_strict(self.TYPE), self) is not None

    def __repr__(self) -> str:
        if self.TYPE.sensitive:
            return SENSITIVE
        name = self.name
        label = self.TYPE.short_name
        return f"{label}({int(self)})" if name is None else f"{label}.{number_name(name)}"

    __str__ = __repr__


def _strict(type_: types.Enum) -> types.Enum:
    return type(type_)(type_.name, type_.underlying, type_.values, strict=True)


class Bits(Enum):
    """A set of flags; the operators `|`, `&`, `^`, `-` and `~` return another set."""

    TYPE: ClassVar[types.Bits]
    _REFUSED = STRICT_BITS_UNKNOWN_BIT

    def __new__(cls, value: int = 0) -> Self:
        return super().__new__(cls, value)

    def __or__(self, other: int) -> Any:
        return type(self)(int(self) | int(other))

    def __and__(self, other: int) -> Any:
        return type(self)(int(self) & int(other))

    def __xor__(self, other: int) -> Any:
        return type(self)(int(self) ^ int(other))

    def __sub__(self, other: int) -> Any:
        return type(self)(int(self) & ~int(other))

    def __invert__(self) -> Any:
        return type(self)(self.TYPE.mask & ~int(self))

    def __contains__(self, flag: int) -> bool:
        """Return whether this value has all flags of another value."""
        return int(self) & int(flag) == int(flag)

    def __repr__(self) -> str:
        if self.TYPE.sensitive:
            return SENSITIVE
        label, rest = self.TYPE.short_name, int(self)
        names = []
        for name, value in self.TYPE.values.items():
            if int(self) & value == value:
                names.append(f"{label}.{number_name(name)}")
                rest &= ~value
        if rest or not names:
            names.append(f"{label}({rest:#x})" if rest else f"{label}(0)")
        return " | ".join(names)

    __str__ = __repr__


class FrameworkError(Enum):
    """The reason why a server didn't execute a flexible method. FIDL defines the reasons."""

    TYPE = types.FRAMEWORK_ERROR
