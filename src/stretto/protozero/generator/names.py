"""Converts names of schemas to names of Python attributes, modules and C functions."""

from __future__ import annotations

import keyword
import re

from stretto.protozero.enums import Enum
from stretto.protozero.message import Message

BUILTIN_TYPES = frozenset(
    ("int", "bool", "float", "str", "bytes", "list", "dict", "type", "memoryview")
)
"""Names used by annotations of stubs: a field with such a name would shadow the type."""

MODULE_SUFFIX = "_pbzero"
"""The suffix of generated modules, like Perfetto's `.pbzero.h`."""

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
    """Return the attribute name of a field: its name, followed by `_` if it is reserved."""
    return name + "_" if name in _RESERVED else name


def enum_value(name: str) -> str:
    """Return the name of an enum value's constant."""
    return name + "_" if name in _RESERVED_VALUES else name


def type_path(name: str) -> str:
    """Return the path of a class in its module; `name` is the type's name without the package."""
    outermost, *nested = name.split(".")
    if outermost in _RESERVED_TYPES:
        outermost += "_"
    return ".".join([outermost, *map(enum_value, nested)])


def module_of(file: str, prefix: str = "") -> str:
    """Return the name of the module generated for `folder/name.proto`: `folder.name_pbzero`.

    Args:
        file: path of the file, as other files import it.
        prefix: package that contains all generated modules; may be empty.
    """
    path = file.removesuffix(".proto").replace("-", "_").replace("/", ".")
    return f"{prefix}.{path}{MODULE_SUFFIX}" if prefix else path + MODULE_SUFFIX


def well_known_module(file: str) -> str:
    """Return the name of the module for a file that ships with protobuf; "" for other files."""
    folder, _, name = file.rpartition("/")
    if folder != "google/protobuf" or name.removesuffix(".proto") not in WELL_KNOWN:
        return ""
    return module_of(name, WELL_KNOWN_PACKAGE)


def constant(name: str) -> str:
    """Convert CamelCase and dots to UPPER_CASE."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return name.replace(".", "_").upper()
