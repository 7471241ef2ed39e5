"""Front end: an encoded FileDescriptorSet, or the descriptors inside a Python protobuf module.

Read with our own decoder, so that generating needs no google.protobuf either,
except to import a module that was made by it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from stretto.protozero.generator.schema import (
    KINDS,
    MAP,
    MESSAGE,
    Enum,
    Field,
    File,
    Message,
    Method,
    SchemaError,
    Service,
)
from stretto.protozero.wire import DELIMITED, read_field

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPEATED = 3


class _Node:
    """The fields of one descriptor message, by number, undecoded."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        pos = 0
        while pos < len(data):
            number, wire_type, value, pos = read_field(data, pos, len(data))
            payload = data[value:pos] if wire_type == DELIMITED else value
            self._fields.setdefault(number, []).append(payload)

    def nodes(self, number: int) -> Iterator[_Node]:
        for payload in self._fields.get(number, ()):
            assert isinstance(payload, bytes)
            yield _Node(payload)

    def text(self, number: int) -> str:
        payload = self._fields.get(number, [b""])[-1]
        assert isinstance(payload, bytes)
        return payload.decode()

    def integer(self, number: int, default: int = 0) -> int:
        value = self._fields.get(number, [default])[-1]
        assert isinstance(value, int)
        return value

    def has(self, number: int) -> bool:
        return number in self._fields


def read_module(name: str) -> list[File]:
    """Read the schema inside an installed module that protoc's Python plugin wrote."""
    descriptor = importlib.import_module(name).DESCRIPTOR
    return [_file(_Node(descriptor.serialized_pb))]


def read_descriptor_set(data: bytes) -> list[File]:
    """Read an encoded FileDescriptorSet."""
    return [_file(node) for node in _Node(data).nodes(1)]


def _file(node: _Node) -> File:
    package = node.text(2)
    proto3 = node.text(12) == "proto3"
    prefix = package + "." if package else ""
    return File(
        package,
        proto3,
        [_message(child, prefix, proto3) for child in node.nodes(4)],
        [_enum(child, prefix) for child in node.nodes(5)],
        [_service(child, prefix) for child in node.nodes(6)],
    )


def _message(node: _Node, prefix: str, proto3: bool) -> Message:
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
    return message


def _field(node: _Node, oneofs: list[str], proto3: bool) -> Field:
    kind = KINDS[node.integer(5)]
    if kind == "group":
        raise SchemaError(f"{node.text(1)}: groups are not supported, use a message")
    repeated = node.integer(4) == _REPEATED
    # A proto3 "optional" stands in the descriptor as a oneof of one.
    optional = bool(node.integer(17))
    oneof = oneofs[node.integer(9)] if node.has(9) and not optional else ""
    scalar = kind not in (MESSAGE, "string", "bytes")
    packed = proto3 and repeated and scalar
    for options in node.nodes(8):
        packed = bool(options.integer(2, packed))
    return Field(
        name=node.text(1),
        number=node.integer(3),
        kind=kind,
        type_name=node.text(6).lstrip("."),
        repeated=repeated,
        packed=packed,
        implicit=proto3 and not (repeated or optional or oneof or kind == MESSAGE),
        oneof=oneof,
        default=node.text(7),
    )


def _enum(node: _Node, prefix: str) -> Enum:
    values = [(value.text(1), _int32(value.integer(2))) for value in node.nodes(2)]
    return Enum(prefix + node.text(1), values)


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _service(node: _Node, prefix: str) -> Service:
    methods = [
        Method(m.text(1), m.text(2).lstrip("."), m.text(3).lstrip("."), bool(m.integer(6)))
        for m in node.nodes(2)
    ]
    return Service(prefix + node.text(1), methods)
