"""Classes of a generated module, made when they are first used.

A schema has a thousand messages and a program uses twenty, so a generated
module holds only text: for each message a line per field, in the order of
declaration ::

    NAME NUMBER KIND[:TYPE] [repeated | packed | implicit] [oneof=GROUP] [proto=NAME] [default=…]

KIND is a scalar's name, `enum`, `message`, or `map:KEY,KIND`. TYPE is a path in
the same module, or `MODULE/PATH`. `proto` is the schema's name where Python
reserves it; the default is escaped like a Python string, blanks too.
"""

from __future__ import annotations

import sys

from stretto.protozero.codec import SCALARS, Codec, MessageCodec
from stretto.protozero.enums import Enum
from stretto.protozero.field import Field, MapField, RepeatedField
from stretto.protozero.message import Layout, Message
from stretto.protozero.writer import writer_class

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from typing import Any


class Table:
    """The types of one generated module, by path (`TraceConfig.BufferConfig`)."""

    def __init__(self, module: str, messages: dict[str, str], enums: dict[str, str]) -> None:
        self._module = module
        self._messages = messages
        self._enums = enums
        self._types: dict[str, type] = {}

    def attribute(self, name: str) -> Any:
        """The module's `__getattr__`."""
        if "." in name or not (name in self._messages or name in self._enums):
            raise AttributeError(f"module {self._module!r} has no attribute {name!r}")
        made = self.find(name)
        setattr(sys.modules[self._module], name, made)
        return made

    def names(self) -> list[str]:
        """The module's `__dir__`."""
        return [name for name in (*self._messages, *self._enums) if "." not in name]

    def find(self, path: str) -> Any:
        """The class of a message or enum."""
        made = self._types.get(path)
        if made is None:
            made = self._make_message(path) if path in self._messages else self._make_enum(path)
            # Of two threads that made it at once, both use the first one's.
            made = self._types.setdefault(path, made)
        return made

    def _make_message(self, path: str) -> type[Message]:
        fields = [self._field(path, line) for line in self._messages[path].splitlines()]
        layout = Layout(path, fields)
        namespace: dict[str, Any] = {
            "__slots__": (),
            "__module__": self._module,
            "__qualname__": path,
            "LAYOUT": layout,
            "Writer": _Lazy(lambda: writer_class(layout, self._module)),
        }
        for inner in self._nested(path, self._enums):
            namespace |= self.find(inner).VALUES
            namespace[inner.rpartition(".")[2]] = self.find(inner)
        for inner in self._nested(path, self._messages):
            namespace[inner.rpartition(".")[2]] = _Lazy(lambda inner=inner: self.find(inner))
        return type(path.rpartition(".")[2], (Message,), namespace)

    def _make_enum(self, path: str) -> type[Enum]:
        pairs = (pair.split("=") for pair in self._enums[path].split())
        values = {name: int(value) for name, value in pairs}
        namespace = {"__module__": self._module, "__qualname__": path, "VALUES": values, **values}
        return type(path.rpartition(".")[2], (Enum,), namespace)

    @staticmethod
    def _nested(path: str, table: dict[str, str]) -> list[str]:
        prefix = path + "."
        return [
            name for name in table if name.startswith(prefix) and "." not in name[len(prefix) :]
        ]

    def _field(self, message: str, line: str) -> Field:
        name, number, kind, *flags = line.split(" ")
        kind, _, target = kind.partition(":")
        field: Field
        if kind == "map":
            key, _, value = target.partition(",")
            value_codec = self._codec(*value.partition(":")[::2])
            field = MapField(message, name, int(number), SCALARS[key], value_codec)
        elif "repeated" in flags or "packed" in flags:
            codec = self._codec(kind, target)
            field = RepeatedField(message, name, int(number), codec, "packed" in flags)
        else:
            field = Field(message, name, int(number), self._codec(kind, target))
        field.implicit = "implicit" in flags
        for option, _, value in (flag.partition("=") for flag in flags):
            if option == "oneof":
                field.oneof = value
            elif option == "proto":
                field.proto_name = value
            elif option == "default":
                field.default = self._default(field.codec.kind, target, value)
        return field

    def _codec(self, kind: str, target: str) -> Codec:
        if kind != "message":
            return SCALARS[kind]
        return MessageCodec(target.rpartition("/")[2], lambda: self._resolve(target))

    def _resolve(self, target: str) -> Any:
        module, _, path = target.rpartition("/")
        if not module:
            return self.find(path)
        __import__(module)
        found: Any = sys.modules[module]
        for name in path.split("."):
            found = getattr(found, name)
        return found

    def _default(self, kind: str, target: str, escaped: str) -> Any:
        text = escaped.encode("ascii").decode("unicode_escape")
        if kind == "enum":
            return self._resolve(target).value_of(text)
        if kind == "bool":
            return text == "true"
        if kind == "string":
            return text
        if kind == "bytes":
            return text.encode("latin-1")
        return float(text) if kind in ("float", "double") else int(text, 0)


class _Lazy:
    """A class attribute that is made when it is first read."""

    __slots__ = ("_make", "_name")

    def __init__(self, make: Any) -> None:
        self._make = make

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, _instance: object, owner: type) -> Any:
        made = self._make()
        setattr(owner, self._name, made)
        return made
