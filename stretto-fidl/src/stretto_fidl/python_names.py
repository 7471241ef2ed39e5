"""Finds Python names for FIDL names.

A name that is already used for something else gets a `_` at its end.

    where             used names, besides Python's keywords
    modules           FIDL_LIBRARY
    structs, tables   TYPE
    unions            TYPE, ordinal, value, which, is_unknown
    enums, bits       TYPE, name, is_unknown, the attributes of int, mro
    handlers          on_unknown_method, on_unknown_event
    clients, servers  their own attributes: `transport.stubs`

A name in FIDL starts with a letter and ends with a letter or a digit. `from_` and `_anything` are
not FIDL names. So no FIDL name equals another FIDL name with `_` appended, or a name that classes
and generated modules use for themselves. The Python names are the same on every version of Python,
so that generated modules run on all versions.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container

NAME: Final = re.compile("[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
"""A name in a definition, without its library."""
LIBRARY: Final = re.compile(r"[a-z][a-z0-9]*(?:\.[a-z][a-z0-9]*)*")
"""The name of a library. Replacing `.` by `_` never makes two names equal."""

OF_MODULES: Final = frozenset({"FIDL_LIBRARY"})
OF_RECORDS: Final = frozenset({"TYPE"})
OF_UNIONS: Final = OF_RECORDS | {"ordinal", "value", "which", "is_unknown"}
_OF_INTS: Final = frozenset(
    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag is_integer "
    "numerator real to_bytes".split()
)
OF_NUMBERS: Final = OF_RECORDS | _OF_INTS | {"name", "is_unknown", "mro"}
OF_HANDLERS: Final = frozenset({"on_unknown_method", "on_unknown_event"})


def python_name(name: str, taken: Container[str] = ()) -> str:
    """Return a FIDL name, or the name with `_` if it is a keyword or in `taken`.

    Args:
        name: The name in FIDL.
        taken: The names that may not be used, besides Python's keywords.
    """
    return f"{name}_" if iskeyword(name) or name in taken else name


def module_name(library: str) -> str:
    """Return the name of a library's module, without its package: `a_b` for `a.b`."""
    return python_name(library.replace(".", "_"))
