"""Checks schemas for rules that aren't part of the grammar.

protoc checks the descriptors that it creates. This module checks the .proto files that our own
parser reads. It finds errors that would lead to lost data, or to a class that fails when it is
first used.
"""

from __future__ import annotations

from stretto.protozero.generator.schema import ENUM, SchemaError, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.protozero.generator.schema import Field, File, Message, Schema

MAX_NUMBER = (1 << 29) - 1

_NO_KEYS = ("float", "double", "bytes", "message", ENUM)


def check_file(file: File, schema: Schema) -> None:
    """Check the types of a file whose names are resolved.

    Raises:
        SchemaError: a type is invalid; the error contains the file, the message and the field.
    """
    try:
        messages = list(walk(file.messages))
        inner = [enum.name for message in messages for enum in message.enums]
        outer = [enum.name for enum in file.enums]
        for name in _repeated([message.name for message in messages] + inner + outer):
            raise SchemaError(f"{name} is defined twice")
        for message in messages:
            _check_fields(message, schema)
            for field in message.extensions:
                _check_field(message.name, field, schema)
        for field in file.extensions:
            _check_field(file.package, field, schema)
    except SchemaError as error:
        raise SchemaError(f"{file.name}: {error}") from None


def _repeated(names: Iterable[object]) -> list[object]:
    seen: set[object] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def _check_fields(message: Message, schema: Schema) -> None:
    for field in message.fields:
        _check_field(message.name, field, schema)
    for name in _repeated(field.name for field in message.fields):
        raise SchemaError(f"{message.name} has two fields called {name}")
    for number in _repeated(field.number for field in message.fields):
        raise SchemaError(f"{message.name} has two fields of number {number}")


def _check_field(scope: str, field: Field, schema: Schema) -> None:
    where = f"{scope}.{field.name}" if scope else field.name
    if not 1 <= field.number <= MAX_NUMBER:
        raise SchemaError(f"{where} has the number {field.number}: use one from 1 to {MAX_NUMBER}")
    if field.map_key is not None and field.map_key.kind in _NO_KEYS:
        raise SchemaError(f"{where} has keys of type {field.map_key.kind}: use integers or strings")
    if field.default and not _fits(field, schema):
        kind = field.type_name or field.kind
        raise SchemaError(f"{where} is of type {kind}: {field.default} can't be its default")


def _fits(field: Field, schema: Schema) -> bool:
    kind, default = field.kind, field.default
    if kind in ("string", "bytes"):
        return True
    if kind == "bool":
        return default in ("true", "false")
    if kind == ENUM:
        return any(default == name for name, _ in schema.enums[field.type_name].values)
    try:
        if kind in ("float", "double"):
            float(default)
            return True
        bits, signed = (64 if "64" in kind else 32), not kind.startswith(("u", "fixed"))
        return -(1 << bits - 1) * signed <= int(default) < 1 << bits - signed
    except ValueError:
        return False
