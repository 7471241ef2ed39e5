"""The schema model: created by front ends, used by emitters."""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.base.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE = "message"
ENUM = "enum"
MAP = "map"
# Names of FieldDescriptorProto.Type by number; groups are not supported.
KINDS = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
    *("group", MESSAGE, "bytes", "uint32", ENUM, "sfixed32", "sfixed64", "sint32", "sint64"),
)
SCALARS = frozenset(KINDS) - {"", "group", MESSAGE, ENUM}


class SchemaError(ConfigError):
    """A schema is malformed, or refers to a missing type."""


@dataclass(slots=True)
class Field:
    """A field, or an extension of the message `extendee`.

    `type_name` is the full name of the field's message or enum. The default value of a bytes field
    is a string of characters below 256. `json_name` is empty if the JSON name is the standard one.
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
    """An enumeration; several names may have the same value."""

    name: str
    values: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """A message with its fields in the order of declaration."""

    name: str
    fields: list[Field] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    extensions: list[Field] = field(default_factory=list)


TRACE = "stretto.trace"
TRACE_ALL = "stretto.trace_all"
TRACE_NUMBER = 50935
"""The options of `stretto/trace_options.proto`. protoc requires different names for the options of
services and methods; our parser accepts `(stretto.trace)` for services, too."""


@dataclass(slots=True)
class Method:
    """A method of a service; `streaming` if it sends several replies.

    `trace` is the category in the method's option `(stretto.trace)`; None without the option.
    """

    name: str
    argument: str
    reply: str
    streaming: bool = False
    trace: str | None = None


@dataclass(slots=True)
class Service:
    """A service; the id of a method on the wire is its position, counted from 1.

    `trace` is the category of methods without their own category; "" if they aren't traced.
    """

    name: str
    methods: list[Method] = field(default_factory=list)
    trace: str = ""


@dataclass(slots=True)
class File:
    """One .proto file. Names are full names: with the package, without a leading dot.

    Only the names of fields and extensions are without the package. `public` are the `imports`
    whose types are also types of this file. `trace_option_at` is the position of the first option
    of ours, for error messages; "" if there is none.
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
        """Return the names of messages and enums that aren't nested."""
        return [message.name for message in self.messages] + [enum.name for enum in self.enums]


class Schema:
    """All types of several files, by full name."""

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
        """Return the outermost types of the messages `roots`, and all outermost types they use."""
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
        """Return the name of the outermost type that contains `name`."""
        parent = name.rpartition(".")[0]
        while parent in self.messages:
            name, parent = parent, parent.rpartition(".")[0]
        if name not in self.messages and name not in self.enums:
            raise SchemaError(f"no message or enum is called {name!r}")
        return name

    def split_package(self, name: str) -> tuple[str, str]:
        """Split a full name into the package and the name within it."""
        package = self.outermost(name).rpartition(".")[0]
        return package, name[len(package) + 1 :] if package else name

    def _used(self, name: str) -> Iterator[str]:
        for message in walk([self.messages[name]]):
            for used in (*message.fields, *message.extensions):
                for part in (used, used.map_value):
                    if part is not None and part.type_name:
                        yield part.type_name


def walk(messages: list[Message]) -> Iterator[Message]:
    """Yield messages and all nested messages, outer ones first."""
    for message in messages:
        yield message
        yield from walk(message.messages)
