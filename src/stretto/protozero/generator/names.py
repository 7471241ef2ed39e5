"""Names of schemas as names of Python attributes."""

from __future__ import annotations

import keyword

from stretto.protozero.message import Message

BUILTIN_TYPES = frozenset(("int", "bool", "float", "str", "bytes", "list", "dict", "type"))
"""What the annotations of a stub name; a field of that name would shadow it."""

_RESERVED = frozenset(dir(Message)) | frozenset(keyword.kwlist) | {"self"}


def attribute(name: str) -> str:
    """The attribute of a field or enum value: its name, with `_` behind if that is taken."""
    return name + "_" if name in _RESERVED else name
