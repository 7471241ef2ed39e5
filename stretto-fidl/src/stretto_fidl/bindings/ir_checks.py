"""Checks a JSON IR, which is not trusted.

The names of a definition become names in Python, its numbers become sizes and offsets in messages.
Anything that FIDL's compilers never write is an error when the IR is read, not when the first
message is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from stretto_fidl.codec import types
from stretto_fidl.errors import FidlError
from stretto_fidl.python_names import LIBRARY, NAME

IR = Mapping[str, Any]
"""A parsed JSON document, or a part of one."""

MAX_COUNT: Final = (1 << 32) - 1
"""The maximum number of elements of an array."""
MAX_DEPTH: Final = 64
"""The maximum depth of nested types, as in the compiler."""
MAX_TABLE_ORDINAL: Final = (1 << 16) // 8
"""The number of envelopes that fit into a message of 64 KiB."""
MAX_ORDINAL: Final = (1 << 64) - 1
"""The highest ordinal of a method, and of a member of a union."""


def checked_name(name: str, full: bool = False) -> str:
    """Return a FIDL name if it is valid.

    Args:
        name: The name of a member or method, or, if `full`, of a declaration: `library/Name`.
        full: Whether the name has its library.

    Raises:
        FidlError: The name is invalid.
    """
    library, slash, short = name.rpartition("/")
    fits = NAME.fullmatch(short) and (not slash or LIBRARY.fullmatch(library))
    if not fits or bool(slash) is not full:
        raise FidlError(f"{name[:100]!r} isn't a valid FIDL name: the document is broken")
    return name


def checked_library(name: str) -> str:
    """Return the name of a library if it is valid.

    Raises:
        FidlError: The name is invalid.
    """
    if not LIBRARY.fullmatch(name):
        raise FidlError(f"{name[:100]!r} isn't a valid FIDL library name")
    return name


def checked_declarations(library: str, names: Iterable[str]) -> None:
    """Check that each defined name belongs to this library, and that no name is defined twice.

    Raises:
        FidlError: A name belongs to another library, or appears twice.
    """
    seen: set[str] = set()
    for name in names:
        if checked_name(name, full=True).rpartition("/")[0] != library:
            raise FidlError(f"{name} isn't of the library {library}: the document is broken")
        if name in seen:
            raise FidlError(f"{library} defines {name} twice: the document is broken")
        seen.add(name)


def whole_number(value: object, low: int, high: int, what: str) -> int:
    """Return a number, or the number written in a string, if it is in a range.

    Args:
        value: The value in the document.
        low: The smallest number.
        high: The largest number.
        what: The meaning of the number, for the error.

    Raises:
        FidlError: The value is not a whole number, or is out of the range.
    """
    digits = value if isinstance(value, str) and len(value) <= 20 else ""
    plain = isinstance(value, int) and not isinstance(value, bool)
    if not plain and not digits.removeprefix("-").isdecimal():
        raise FidlError(f"{what} isn't a whole number, but {repr(value)[:100]}")
    number = int(digits or value)  # type: ignore[call-overload]
    if not low <= number <= high:
        raise FidlError(f"{what} is {number}, not one of {low} to {high}")
    return int(number)


def check_unique(what: str, names: Iterable[object]) -> None:
    """Check that no name appears twice.

    Args:
        what: The message of the error: `S has two members of one name`.
        names: The names to compare.

    Raises:
        FidlError: A name appears twice.
    """
    found = list(names)
    if len(found) != len(set(found)):
        raise FidlError(f"{what}: the document is broken")


def integer_type(name: str, owner: str) -> types.Primitive:
    """Return the underlying type of an enum or bits.

    Raises:
        FidlError: The type is not an integer type.
    """
    found = types.PRIMITIVES.get(name)
    if found is None or found.low is None or found is types.BOOL:
        raise FidlError(f"{owner} is made of {name[:100]!r}, no type of integers")
    return found
