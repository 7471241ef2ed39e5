"""Names of schemas as names of Python attributes, modules and C functions."""

from __future__ import annotations

import keyword
import re

from stretto.protozero.enums import Enum
from stretto.protozero.message import Message

BUILTIN_TYPES = frozenset(
    ("int", "bool", "float", "str", "bytes", "list", "dict", "type", "memoryview")
)
"""What the annotations of a stub name; a field of that name would shadow it."""

MODULE_SUFFIX = "_pbzero"
"""As Perfetto's `.pbzero.h`."""

WELL_KNOWN_PACKAGE = "stretto.protozero.well_known"
WELL_KNOWN = (
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct",
    "timestamp", "type", "wrappers",
)  # fmt: skip
"""The files `google/protobuf/NAME.proto`, which ship with protobuf."""

_KEYWORDS = frozenset(keyword.kwlist)
_RESERVED = frozenset(dir(Message)) | _KEYWORDS | {"self", "Writer", "Decoder", "bytes_left"}
_RESERVED_VALUES = _RESERVED | frozenset(dir(Enum)) | {"VALUES"}
_RESERVED_TYPES = _KEYWORDS | {"annotations"}


def attribute(name: str) -> str:
    """The attribute of a field: its name, with `_` behind if that is taken."""
    return name + "_" if name in _RESERVED else name


def enum_value(name: str) -> str:
    """The constant of an enum's value."""
    return name + "_" if name in _RESERVED_VALUES else name


def type_path(name: str) -> str:
    """Where the class of a message or enum is in its module, by its name without the package."""
    outermost, *nested = name.split(".")
    if outermost in _RESERVED_TYPES:
        outermost += "_"
    return ".".join([outermost, *map(enum_value, nested)])


def module_of(file: str, prefix: str = "") -> str:
    """The module that is generated for `folder/name.proto`: `folder.name_pbzero`.

    Args:
        file: its path, as other files import it.
        prefix: the package that all generated modules lie in, or nothing.
    """
    path = file.removesuffix(".proto").replace("-", "_").replace("/", ".")
    return f"{prefix}.{path}{MODULE_SUFFIX}" if prefix else path + MODULE_SUFFIX


def well_known_module(file: str) -> str:
    """The module that Stretto has for a file that ships with protobuf, or nothing."""
    folder, _, name = file.rpartition("/")
    if folder != "google/protobuf" or name.removesuffix(".proto") not in WELL_KNOWN:
        return ""
    return module_of(name, WELL_KNOWN_PACKAGE)


def constant(name: str) -> str:
    """CamelCase and dots to UPPER_CASE."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return name.replace(".", "_").upper()
