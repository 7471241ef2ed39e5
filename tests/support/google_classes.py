"""Creates google.protobuf classes for Stretto's schemas, to compare both implementations.

The classes are built in memory from the schemas that Stretto's front ends read, so that no protoc
is needed. Another test compares the schemas with protoc's if protoc is installed.
"""

from __future__ import annotations

import importlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from stretto.protozero.generator.schema import ENUM, KINDS, MAP, MESSAGE, Enum, Field, File, Message

PERFETTO = "perfetto.protos.perfetto.trace.perfetto_trace_pb2"
_OPTIONAL, _REPEATED = 1, 3


def perfetto_messages() -> dict[str, Any]:
    """Return every message class in the `perfetto` distribution, by full name."""
    module = importlib.import_module(PERFETTO)
    return _classes(module.DESCRIPTOR)


def messages_of(file: File, *, perfetto: bool = False) -> dict[str, Any]:
    """Return a class for each message of a schema.

    With `perfetto`, the schema may import Perfetto's schema.
    """
    pool = descriptor_pool.DescriptorPool()
    dependencies = []
    if perfetto:
        data = importlib.import_module(PERFETTO).DESCRIPTOR.serialized_pb
        pool.AddSerializedFile(data)
        dependencies.append(descriptor_pb2.FileDescriptorProto.FromString(data).name)
    pool.AddSerializedFile(descriptor_of(file, "sample.proto", dependencies).SerializeToString())
    return _classes(pool.FindFileByName("sample.proto"))


def _classes(descriptor: Any) -> dict[str, Any]:
    waiting = list(descriptor.message_types_by_name.values())
    found = {}
    while waiting:
        message = waiting.pop()
        if not message.GetOptions().map_entry:
            found[message.full_name] = message_factory.GetMessageClass(message)
            waiting.extend(message.nested_types)
    return found


def descriptor_of(file: File, name: str, dependencies: list[str]) -> Any:
    """Return a schema as the FileDescriptorProto that protoc would produce."""
    made = descriptor_pb2.FileDescriptorProto(
        name=name,
        package=file.package,
        syntax="proto3" if file.proto3 else "proto2",
        dependency=dependencies,
    )
    made.public_dependency.extend(dependencies.index(imported) for imported in file.public)
    made.enum_type.extend(_enum(enum) for enum in file.enums)
    made.message_type.extend(_message(message, proto3=file.proto3) for message in file.messages)
    made.extension.extend(_field(extension, []) for extension in file.extensions)
    return made


def _enum(enum: Enum) -> Any:
    made = descriptor_pb2.EnumDescriptorProto(name=enum.name.rpartition(".")[2])
    made.options.allow_alias = len({value for _, value in enum.values}) < len(enum.values)
    for name, number in enum.values:
        made.value.add(name=name, number=number)
    return made


def _message(message: Message, *, proto3: bool) -> Any:
    made = descriptor_pb2.DescriptorProto(name=message.name.rpartition(".")[2])
    made.enum_type.extend(_enum(enum) for enum in message.enums)
    made.nested_type.extend(_message(nested, proto3=proto3) for nested in message.messages)
    oneofs: list[str] = []
    for field in message.fields:
        if field.oneof and field.oneof not in oneofs:
            oneofs.append(field.oneof)
            made.oneof_decl.add(name=field.oneof)
    for field in message.fields:
        made.field.append(_field(field, oneofs, f"{message.name}.{_entry_name(field)}"))
        if field.kind == MAP:
            made.nested_type.append(_entry(field))
    made.extension.extend(_field(extension, []) for extension in message.extensions)
    for field, described in zip(message.fields, list(made.field), strict=True):
        if proto3 and not (
            field.repeated or field.oneof or field.implicit or field.kind == MESSAGE
        ):
            described.proto3_optional = True
            described.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{field.name}")
    return made


def _field(field: Field, oneofs: list[str], entry: str = "") -> Any:
    made = descriptor_pb2.FieldDescriptorProto(name=field.name, number=field.number)
    made.label = _REPEATED if field.repeated else _OPTIONAL
    if field.json_name:
        made.json_name = field.json_name
    if field.extendee:
        made.extendee = f".{field.extendee}"
    if field.kind == MAP:
        made.type = KINDS.index(MESSAGE)
        made.type_name = f".{entry}"
        return made
    made.type = KINDS.index(field.kind)
    if field.kind in (MESSAGE, ENUM):
        made.type_name = f".{field.type_name}"
    if field.oneof:
        made.oneof_index = oneofs.index(field.oneof)
    if field.repeated and field.kind not in (MESSAGE, "string", "bytes"):
        made.options.packed = field.packed
    if field.default:
        made.default_value = field.default
        if field.kind == "bytes":
            made.default_value = "".join(f"\\{ord(char):03o}" for char in field.default)
    return made


def _entry(field: Field) -> Any:
    made = descriptor_pb2.DescriptorProto(name=_entry_name(field))
    made.options.map_entry = True
    for part in (field.map_key, field.map_value):
        assert part is not None
        made.field.append(_field(part, []))
    return made


def _entry_name(field: Field) -> str:
    words = field.name.split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Entry"
