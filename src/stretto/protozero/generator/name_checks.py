"""Checks the names of a schema: only valid identifiers and paths are accepted.

The names become Python names and file names. protoc checks them, but a FileDescriptorSet may come
from another source, and our own parser accepts any token as a name.
"""

from __future__ import annotations

import re

from stretto.protozero.generator.schema import SchemaError, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.protozero.generator.schema import Enum, Field, File, Message

_WORD = "[A-Za-z_][A-Za-z0-9_]*"
_NAME = re.compile(_WORD)
_FULL_NAME = re.compile(rf"{_WORD}(?:\.{_WORD})*")
_PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")


def check_names(file: File) -> None:
    """Check all names of a file.

    Raises:
        SchemaError: A name is invalid.
    """
    for path in (file.name, *file.imports):
        if not _PATH.fullmatch(path):
            raise SchemaError(f"{path[:100]!r} is no name of a file: such as folder/name.proto")
    for pattern, names in ((_FULL_NAME, _full_names(file)), (_NAME, _names(file))):
        for name in names:
            if not pattern.fullmatch(name):
                raise SchemaError(f"{file.name}: {name[:100]!r} is no name")


def _full_names(file: File) -> Iterator[str]:
    """Yield names with their packages. A type that isn't resolved may begin with a dot."""
    if file.package:
        yield file.package
    for service in file.services:
        yield service.name
        for method in service.methods:
            yield from (method.argument.removeprefix("."), method.reply.removeprefix("."))
    for enum in file.enums:
        yield enum.name
    yield from _types_of(file.extensions)
    for message in walk(file.messages):
        yield message.name
        yield from (enum.name for enum in message.enums)
        yield from _types_of(_fields(message))


def _types_of(fields: list[Field]) -> Iterator[str]:
    for field in fields:
        used = [field.type_name, field.extendee]
        if field.map_value is not None:
            used.append(field.map_value.type_name)
        yield from (name.removeprefix(".") for name in used if name)


def _names(file: File) -> Iterator[str]:
    """Yield all names that a file declares, without their packages."""
    for service in file.services:
        yield from (method.name for method in service.methods)
    yield from (field.name for field in file.extensions)
    yield from _values(file.enums)
    for message in walk(file.messages):
        yield from (field.name for field in _fields(message))
        yield from (field.oneof for field in message.fields if field.oneof)
        yield from _values(message.enums)


def _fields(message: Message) -> list[Field]:
    return [*message.fields, *message.extensions]


def _values(enums: list[Enum]) -> Iterator[str]:
    return (name for enum in enums for name, _ in enum.values)
