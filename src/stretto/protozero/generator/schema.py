"""What a schema says, whatever it was read from: the model between front ends and emitters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stretto.base.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE = "message"
ENUM = "enum"
MAP = "map"
# FieldDescriptorProto.Type, by number; groups are not supported.
KINDS = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("group", MESSAGE, "bytes", "uint32", ENUM, "sfixed32", "sfixed64", "sint32", "sint64"),
)
SCALARS = frozenset(KINDS) - {"", "group", MESSAGE, ENUM}


class SchemaError(ConfigError):
    """A schema is malformed, or names what doesn't exist."""


@dataclass(slots=True)
class Field:
    """A field, or an extension of the message `extendee`.

    `type_name` is the full name of its message or enum. The default of bytes is
    a string of characters below 256. `json_name` is empty where it is the usual.
    """

    name: str
    number: int
    kind: str
    type_name: str = ""
    repeated: bool = False
    packed: bool = False
    implicit: bool = False
    oneof: str = ""
    redact: bool = False
    default: str = ""
    json_name: str = ""
    extendee: str = ""
    map_key: Field | None = None
    map_value: Field | None = None


@dataclass(slots=True)
class Enum:
    """An enumeration; two names may share a value."""

    name: str
    values: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """A message with its fields in the order of their declaration."""

    name: str
    fields: list[Field] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    extensions: list[Field] = field(default_factory=list)


TRACE = "stretto.trace"
TRACE_ALL = "stretto.trace_all"
TRACE_NUMBER = 50935
"""The options of `stretto/trace_options.proto`. The service's has a name and the number of its own,
for protoc's sake; our parser takes `(stretto.trace)` there, too."""


@dataclass(slots=True)
class Method:
    """A method of a service; `streaming` if it gives several replies.

    `trace` is its option `(stretto.trace)`, a category; None if it has none of its own.
    """

    name: str
    argument: str
    reply: str
    streaming: bool = False
    trace: str | None = None


@dataclass(slots=True)
class Service:
    """A service; a method's id on the wire is its position, from 1.

    `trace` is the category of the methods that don't say otherwise; "": they aren't traced.
    """

    name: str
    methods: list[Method] = field(default_factory=list)
    trace: str = ""


@dataclass(slots=True)
class File:
    """One .proto file. All names in it are full: with the package, without a leading dot.

    Exceptions are the names of fields and extensions. `public` are those of the
    `imports` whose types count as this file's too. `trace_option_at` is where the
    first option of ours stands, as errors say it; "" if there is none.
    """

    name: str = ""
    package: str = ""
    proto3: bool = False
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    extensions: list[Field] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    public: list[str] = field(default_factory=list)
    trace_option_at: str = field(default="", compare=False)

    def type_names(self) -> list[str]:
        """Messages and enums that nothing encloses."""
        return [message.name for message in self.messages] + [enum.name for enum in self.enums]


class Schema:
    """All types of some files, by full name."""

    def __init__(self, files: list[File]) -> None:
        self.files = files
        self.messages: dict[str, Message] = {}
        self.enums: dict[str, Enum] = {}
        for file in files:
            self.enums.update((enum.name, enum) for enum in file.enums)
            for message in walk(file.messages):
                self.messages[message.name] = message
                self.enums.update((enum.name, enum) for enum in message.enums)

    def closure(self, roots: list[str]) -> set[str]:
        """The outermost types that the messages `roots` need, themselves included."""
        found: set[str] = set()
        waiting = [self.outermost(name) for name in roots]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            if name in self.messages:
                waiting.extend(self.outermost(used) for used in self._used(name))
        return found

    def outermost(self, name: str) -> str:
        """The name of the type that encloses `name` and is enclosed by none."""
        parent = name.rpartition(".")[0]
        while parent in self.messages:
            name, parent = parent, parent.rpartition(".")[0]
        if name not in self.messages and name not in self.enums:
            raise SchemaError(f"no message or enum is called {name!r}")
        return name

    def split_package(self, name: str) -> tuple[str, str]:
        """A full name as package and name within it."""
        package = self.outermost(name).rpartition(".")[0]
        return package, name[len(package) + 1 :] if package else name

    def _used(self, name: str) -> Iterator[str]:
        for message in walk([self.messages[name]]):
            for used in (*message.fields, *message.extensions):
                for part in (used, used.map_value):
                    if part is not None and part.type_name:
                        yield part.type_name


def walk(messages: list[Message]) -> Iterator[Message]:
    """Go through messages and everything nested in them, outer ones first."""
    for message in messages:
        yield message
        yield from walk(message.messages)
