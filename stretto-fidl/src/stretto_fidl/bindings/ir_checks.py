"""What a JSON IR says is checked: it may come from anybody.

A definition's names become names in Python, its numbers sizes and places in messages. What FIDL's
compilers never write is an error here, not a surprise when the first message is sent.
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
"""Of elements."""
MAX_DEPTH: Final = 64
"""Of types in types, as in our compiler."""
MAX_TABLE_ORDINAL: Final = (1 << 16) // 8
"""As many envelopes as there is room for in a message of 64 KiB."""
MAX_ORDINAL: Final = (1 << 64) - 1
"""Of a method, and of a member of a union."""


def checked_name(name: str, full: bool = False) -> str:
    """A name as FIDL has them.

    Args:
        name: Of a member or method; of a declaration, `library/Name`, if `full`.
        full: Which one.

    Raises:
        FidlError: It's none.
    """
    library, slash, short = name.rpartition("/")
    fits = NAME.fullmatch(short) and (not slash or LIBRARY.fullmatch(library))
    if not fits or bool(slash) is not full:
        raise FidlError(f"{name[:100]!r} is no name in FIDL: the document is broken")
    return name


def checked_library(name: str) -> str:
    """A name of a library.

    Raises:
        FidlError: It's none.
    """
    if not LIBRARY.fullmatch(name):
        raise FidlError(f"{name[:100]!r} is no name of a library in FIDL")
    return name


def checked_declarations(library: str, names: Iterable[str]) -> None:
    """Names of what a library defines: its own ones, each once.

    Raises:
        FidlError: They aren't.
    """
    seen: set[str] = set()
    for name in names:
        if checked_name(name, full=True).rpartition("/")[0] != library:
            raise FidlError(f"{name} isn't of the library {library}: the document is broken")
        if name in seen:
            raise FidlError(f"{library} defines {name} twice: the document is broken")
        seen.add(name)


def whole_number(value: object, low: int, high: int, what: str) -> int:
    """A number, or the digits of one, in a range.

    Args:
        value: What the document has.
        low: The smallest.
        high: The largest.
        what: What it is, for the error.

    Raises:
        FidlError: It's none, or out of the range.
    """
    digits = value if isinstance(value, str) and len(value) <= 20 else ""
    plain = isinstance(value, int) and not isinstance(value, bool)
    if not plain and not digits.removeprefix("-").isdecimal():
        raise FidlError(f"{what} is no whole number, but {repr(value)[:100]}")
    number = int(digits or value)  # type: ignore[call-overload]
    if not low <= number <= high:
        raise FidlError(f"{what} is {number}, not one of {low} to {high}")
    return int(number)


def no_two(what: str, names: Iterable[object]) -> None:
    """Things of which there can be one only.

    Args:
        what: Who would have two, and of what: `S has two members of one name`.
        names: What is theirs.

    Raises:
        FidlError: There are two.
    """
    found = list(names)
    if len(found) != len(set(found)):
        raise FidlError(f"{what}: the document is broken")


def integer_type(name: str, owner: str) -> types.Primitive:
    """The type below an enum or bits.

    Raises:
        FidlError: It's no type of integers.
    """
    found = types.PRIMITIVES.get(name)
    if found is None or found.low is None or found is types.BOOL:
        raise FidlError(f"{owner} is made of {name[:100]!r}, no type of integers")
    return found
