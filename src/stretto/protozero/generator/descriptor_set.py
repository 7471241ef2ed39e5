"""Front end: an encoded FileDescriptorSet, or the descriptors inside a Python protobuf module.

Read with our own decoder, so that generating needs no google.protobuf either,
except to import a module that was made by it.
"""

from __future__ import annotations

import ast
import importlib
from typing import TYPE_CHECKING, Any

from stretto.base.errors import DecodeError
from stretto.protozero.generator.name_checks import check_names
from stretto.protozero.generator.schema import (
    KINDS,
    MAP,
    MESSAGE,
    TRACE_NUMBER,
    Enum,
    Field,
    File,
    Message,
    Method,
    SchemaError,
    Service,
)
from stretto.protozero.table import json_name
from stretto.protozero.wire import DELIMITED, read_field, read_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPEATED = 3


class Node:
    """The fields of one descriptor message (descriptor.proto), by number, undecoded."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        pos = 0
        while pos < len(data):
            number, wire_type, value, pos = read_field(data, pos, len(data))
            payload = data[value:pos] if wire_type == DELIMITED else value
            self._fields.setdefault(number, []).append(payload)

    def nodes(self, number: int) -> Iterator[Node]:
        for payload in self._payloads(number):
            yield Node(payload)

    def text(self, number: int) -> str:
        return self.texts(number)[-1] if self.has(number) else ""

    def texts(self, number: int) -> list[str]:
        return [payload.decode() for payload in self._payloads(number)]

    def integer(self, number: int, default: int = 0) -> int:
        return self.integers(number)[-1] if self.has(number) else default

    def integers(self, number: int) -> list[int]:
        """The values of a repeated field, packed or not."""
        values = []
        for payload in self._fields.get(number, ()):
            pos = 0
            while isinstance(payload, bytes) and pos < len(payload):
                value, pos = read_varint(payload, pos, len(payload))
                values.append(value)
            if isinstance(payload, int):
                values.append(payload)
        return values

    def has(self, number: int) -> bool:
        return number in self._fields

    def _payloads(self, number: int) -> Iterator[bytes]:
        for payload in self._fields.get(number, ()):
            if isinstance(payload, int):
                raise SchemaError(f"field {number} of a descriptor has another type")
            yield payload


def read_module(name: str) -> list[File]:
    """Read the schema inside an installed module that protoc's Python plugin wrote.

    Returns:
        Its file behind those that it imports.

    Raises:
        SchemaError: there is no such module, or it is none of protoc's.
    """
    try:
        descriptor = importlib.import_module(name).DESCRIPTOR
    except (ImportError, AttributeError) as error:
        raise SchemaError(f"{name} is no module that protoc wrote: {error}") from error
    files: dict[str, File] = {}
    _collect(descriptor, files)
    return list(files.values())


def _collect(descriptor: Any, files: dict[str, File]) -> None:
    for imported in descriptor.dependencies:
        _collect(imported, files)
    if descriptor.name not in files:
        files[descriptor.name] = _file(Node(descriptor.serialized_pb))


def read_descriptor_set(data: bytes, field: int = 1) -> list[File]:
    """Read an encoded FileDescriptorSet, or another message with files in `field`.

    Raises:
        SchemaError: there are no files in it, or they have names that are none.
    """
    try:
        files = [_file(node) for node in Node(data).nodes(field)]
    except (DecodeError, UnicodeDecodeError, IndexError) as error:
        raise SchemaError(f"this is no FileDescriptorSet: {error}") from error
    if not files:
        raise SchemaError("this is no FileDescriptorSet: it holds no file")
    for file in files:
        check_names(file)
    return files


def _file(node: Node) -> File:
    name, package, syntax = node.text(1), node.text(2), node.text(12)
    if syntax not in ("", "proto2", "proto3"):
        raise SchemaError(f"{name}: syntax {syntax!r} is not supported, use proto2 or proto3")
    proto3 = syntax == "proto3"
    prefix = package + "." if package else ""
    imports = node.texts(3)
    return File(
        name,
        package,
        proto3,
        [_message(child, prefix, proto3) for child in node.nodes(4)],
        [_enum(child, prefix) for child in node.nodes(5)],
        [_service(child, prefix) for child in node.nodes(6)],
        [_field(child, [], proto3) for child in node.nodes(7)],
        imports,
        [imports[at] for at in node.integers(10)],
    )


def _message(node: Node, prefix: str, proto3: bool) -> Message:
    name = prefix + node.text(1)
    inner = name + "."
    entries = {}
    message = Message(name, enums=[_enum(child, inner) for child in node.nodes(4)])
    for child in node.nodes(3):
        nested = _message(child, inner, proto3)
        if any(options.integer(7) for options in child.nodes(7)):
            entries[nested.name] = nested
        else:
            message.messages.append(nested)
    oneofs = [child.text(1) for child in node.nodes(8)]
    for child in node.nodes(2):
        field = _field(child, oneofs, proto3)
        if field.type_name in entries:
            field.map_key, field.map_value = entries[field.type_name].fields
            # Both are there, whatever their values.
            field.map_key.implicit = field.map_value.implicit = False
            field.kind, field.type_name = MAP, ""
        message.fields.append(field)
    message.extensions = [_field(child, [], proto3) for child in node.nodes(6)]
    return message


def _field(node: Node, oneofs: list[str], proto3: bool) -> Field:
    kind = KINDS[node.integer(5)]
    if kind == "group":
        raise SchemaError(f"{node.text(1)}: groups are not supported, use a message")
    repeated = node.integer(4) == _REPEATED
    # A proto3 "optional" stands in the descriptor as a oneof of one.
    optional = bool(node.integer(17))
    oneof = oneofs[node.integer(9)] if node.has(9) and not optional else ""
    scalar = kind not in (MESSAGE, "string", "bytes")
    packed, redact = proto3 and repeated and scalar, False
    for options in node.nodes(8):
        packed = bool(options.integer(2, packed))
        redact = bool(options.integer(16, redact))
    extendee = node.text(2).lstrip(".")
    return Field(
        name=node.text(1),
        number=node.integer(3),
        kind=kind,
        type_name=node.text(6).lstrip("."),
        repeated=repeated,
        packed=packed,
        implicit=proto3 and not (repeated or optional or oneof or extendee or kind == MESSAGE),
        oneof=oneof,
        redact=redact,
        default=_unescaped(node.text(7)) if kind == "bytes" else node.text(7),
        json_name="" if node.text(10) == json_name(node.text(1)) else node.text(10),
        extendee=extendee,
    )


def _unescaped(text: str) -> str:
    """The default of a bytes field, which descriptors hold escaped as in C."""
    data: bytes = ast.literal_eval(f'b"{text}"')
    return data.decode("latin-1")


def _enum(node: Node, prefix: str) -> Enum:
    values = [(value.text(1), _int32(value.integer(2))) for value in node.nodes(2)]
    return Enum(prefix + node.text(1), values)


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _service(node: Node, prefix: str) -> Service:
    methods = [
        Method(
            m.text(1),
            m.text(2).lstrip("."),
            m.text(3).lstrip("."),
            bool(m.integer(6)),
            _trace_option(m.nodes(4)),
        )
        for m in node.nodes(2)
    ]
    return Service(prefix + node.text(1), methods, _trace_option(node.nodes(3)) or "")


def _trace_option(options: Iterator[Node]) -> str | None:
    """The category that options name; None if they name none."""
    named = [each.text(TRACE_NUMBER) for each in options if each.has(TRACE_NUMBER)]
    return named[-1] if named else None
