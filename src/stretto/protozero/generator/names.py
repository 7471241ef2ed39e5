"""Names of schemas as names of Python attributes."""

from __future__ import annotations

import keyword

from stretto.protozero.message import Message
from stretto.protozero.writer import MessageWriter

BUILTIN_TYPES = frozenset(("int", "bool", "float", "str", "bytes", "list", "dict", "type"))
"""What the annotations of a stub name; a field of that name would shadow it."""

_RESERVED = frozenset(
    name for owner in (Message, MessageWriter) for name in dir(owner)
) | frozenset(keyword.kwlist)


def attribute(name: str) -> str:
    """The attribute of a field or enum value: its name, with `_` behind if that is taken."""
    return name + "_" if name in _RESERVED or name == "self" else name
