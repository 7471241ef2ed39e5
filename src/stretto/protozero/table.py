"""Tables of generated modules, from which classes are created when they are first used.

A schema has a thousand messages and a program uses twenty of them. So a generated module contains
only text: for each message one line per field, in the order of declaration ::

    NAME NUMBER KIND[:TYPE] [repeated | packed | implicit] [redact] [OPTION=...]

- KIND is the name of a scalar type, `enum`, `message`, or `map:KEY,KIND`.
- TYPE is a path in the same module, or `MODULE/PATH`.
- The options are `oneof`, the group of the field; `proto`, the name in the schema, if Python
  reserves this name; `json`, the JSON name, if it isn't the standard one; and `default`. The values
  of `json` and `default` are escaped like a Python string, spaces included.

An enum is a list of `NAME=NUMBER`. If Python reserves the name, the name in the schema follows:
`NAME=NUMBER=PROTO`. The line of an extension begins with the `TYPE` of the extended message. The
rest is a line like that of a field, with the extension's full name as NAME.
"""

from __future__ import annotations

import sys

from stretto.base.errors import ConfigError
from stretto.protozero.codec import SCALARS, Codec, EnumCodec, MessageCodec
from stretto.protozero.enums import Enum
from stretto.protozero.field import Field, MapField, RepeatedField
from stretto.protozero.layout import Layout
from stretto.protozero.message import Message

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any

    from stretto.protozero.extension import Extension
    from stretto.protozero.typed_decoder import TypedDecoder
    from stretto.protozero.writer import MessageWriter

# Keyed by `MODULE/PATH`. A class may get extensions before it is created.
_messages: dict[str, type[Message]] = {}
_extensions: dict[str, list[Extension[Any, Any]]] = {}


class Table:
    """The types of one generated module, by path (`TraceConfig.BufferConfig`).

    Args:
        module: name of the module.
        messages: the fields of each message.
        enums: the values of each enum.
        extensions: the declared extensions.
        public: modules that the schema imports publicly: their types are attributes of this module.
    """

    def __init__(
        self,
        module: str,
        messages: dict[str, str],
        enums: dict[str, str],
        extensions: dict[str, str] | None = None,
        public: tuple[str, ...] = (),
    ) -> None:
        self._module = module
        self._messages = messages
        self._enums = enums
        self._public = public
        self._types: dict[str, type] = {}
        self._paths = ""
        self._extensions: dict[str, Extension[Any, Any]] = {}
        for path, line in (extensions or {}).items():
            self._extensions[path] = self._extension(line)

    def attribute(self, name: str) -> Any:
        """Return an attribute of the module: its `__getattr__`."""
        made = self._attribute(name)
        setattr(sys.modules[self._module], name, made)
        return made

    def _attribute(self, name: str) -> Any:
        if name == "__all__":
            return self.names()
        if "." not in name:
            if name in self._messages or name in self._enums:
                return self.find(name)
            if name in self._extensions:
                return self._extensions[name]
            for module in self._public:
                __import__(module)
                if name in dir(sys.modules[module]):
                    return getattr(sys.modules[module], name)
        raise AttributeError(f"module {self._module!r} has no attribute {name!r}")

    def names(self) -> list[str]:
        """Return the module's public names: its `__dir__`, and its `__all__` for `import *`."""
        own = (*self._messages, *self._enums, *self._extensions)
        names = [name for name in own if "." not in name]
        names += [name for name in vars(sys.modules[self._module]) if _is_constant(name)]
        for module in self._public:
            __import__(module)
            names += dir(sys.modules[module])
        return list(dict.fromkeys(names))

    def find(self, path: str) -> Any:
        """Return the class of a message or enum."""
        made = self._types.get(path)
        if made is None:
            made = self._make_message(path) if path in self._messages else self._make_enum(path)
            # If two threads create the class at the same time, both use the class stored first.
            made = self._types.setdefault(path, made)
            if issubclass(made, Message):
                _extend(f"{self._module}/{path}", made)
        return made

    def _make_message(self, path: str) -> type[Message]:
        layout = Layout(path, self._messages[path], lambda line: self._field(path, line))
        namespace: dict[str, Any] = {
            "__slots__": (),
            "__module__": self._module,
            "__qualname__": path,
            "LAYOUT": layout,
            "Writer": _Lazy(lambda: _writer_class(layout, self._module)),
            "Decoder": _Lazy(lambda: _decoder_class(layout, self._module)),
        }
        for inner in self._nested(path):
            name = inner.rpartition(".")[2]
            if inner in self._extensions:
                namespace[name] = self._extensions[inner]
                continue
            namespace[name] = _Lazy(lambda inner=inner: self.find(inner))
            if inner in self._enums:
                namespace |= _constants(self._enums[inner])
        return type(path.rpartition(".")[2], (Message,), namespace)

    def _make_enum(self, path: str) -> type[Enum]:
        values = {}
        for entry in self._enums[path].split():
            name, value, *proto = entry.split("=")
            values[proto[0] if proto else name] = int(value)
        namespace: dict[str, Any] = {
            "__module__": self._module,
            "__qualname__": path,
            "VALUES": values,
            **_constants(self._enums[path]),
        }
        return type(path.rpartition(".")[2], (Enum,), namespace)

    def _nested(self, path: str) -> list[str]:
        """Return the paths of the types and extensions in a message."""
        if not self._paths:
            self._paths = "\n".join(("", *self._enums, *self._messages, *self._extensions, ""))
        # A search in one text takes much less time than a look at each path.
        _, *rest = self._paths.split(f"\n{path}.")
        names = (text.partition("\n")[0] for text in rest)
        return [f"{path}.{name}" for name in names if "." not in name]

    def _extension(self, line: str) -> Extension[Any, Any]:
        # This import loads `typing`, which modules without extensions don't need.
        from stretto.protozero.extension import Extension

        extendee, _, line = line.partition(" ")
        name, _, rest = line.partition(" ")
        message = extendee.rpartition("/")[2]
        extendee = extendee if "/" in extendee else f"{self._module}/{extendee}"
        made: Extension[Any, Any] = Extension(
            name, extendee, self._field(message, f"[{name}] {rest}")
        )
        # Register the extension before the look-up of the class, which another thread may be
        # creating now.
        _extensions.setdefault(extendee, []).append(made)
        if extendee in _messages:
            try:
                _messages[extendee].LAYOUT.add_extension(made)
            except ConfigError:
                _extensions[extendee].remove(made)
                raise
        return made

    def _field(self, message: str, line: str) -> Field:
        name, number, kind, *flags = line.split(" ")
        field: Field
        kind, _, target = kind.partition(":")
        if kind == "map":
            key, _, value = target.partition(",")
            value_codec = self._codec(*value.partition(":")[::2])
            field = MapField(message, name, int(number), SCALARS[key], value_codec)
        elif "repeated" in flags or "packed" in flags:
            codec = self._codec(kind, target)
            field = RepeatedField(message, name, int(number), codec, "packed" in flags)
        else:
            field = Field(message, name, int(number), self._codec(kind, target))
        if flags:
            field.implicit = "implicit" in flags
            field.redact = "redact" in flags
            options = dict(flag.split("=", 1) for flag in flags if "=" in flag)
            self._set_options(field, target, options)
        return field

    def _set_options(self, field: Field, target: str, options: dict[str, str]) -> None:
        field.oneof = options.get("oneof", "")
        field.proto_name = options.get("proto", field.name)
        if "json" in options:
            field.json_name = _unescaped(options["json"])
        if "default" in options:
            field.default = self._default(field.codec.kind, target, options["default"])

    def _codec(self, kind: str, target: str) -> Codec:
        if kind == "message":
            return MessageCodec(target.rpartition("/")[2], lambda: self._resolve(target))
        if kind == "enum" and target:
            return EnumCodec(lambda: self._resolve(target))
        return SCALARS[kind]

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
        text = _unescaped(escaped)
        if kind == "enum":
            return self._resolve(target).value_of(text)
        if kind == "bool":
            return text == "true"
        if kind == "string":
            return text
        if kind == "bytes":
            return text.encode("latin-1")
        return float(text) if kind in ("float", "double") else int(text, 0)


def _writer_class(layout: Layout, module: str) -> type[MessageWriter]:
    from stretto.protozero.writer import writer_class  # Most programs need no writer.

    return writer_class(layout, module)


def _decoder_class(layout: Layout, module: str) -> type[TypedDecoder]:
    from stretto.protozero.typed_decoder import decoder_class  # Most programs need no decoder.

    return decoder_class(layout, module)


def _unescaped(text: str) -> str:
    return text.encode("ascii").decode("unicode_escape")


def _is_constant(name: str) -> bool:
    """Return whether a name is a service's constant with method ids or trace categories."""
    return name.endswith(("_METHODS", "_TRACE")) and not name.startswith("_")


def _extend(name: str, message: type[Message]) -> None:
    """Register a new class, and add the extensions that are registered for it."""
    _messages[name] = message
    for extension in _extensions.get(name, ()):
        message.LAYOUT.add_extension(extension)


def _constants(enum: str) -> dict[str, int]:
    """Return the values of an enum by their Python names."""
    parts = (entry.split("=") for entry in enum.split())
    return {part[0]: int(part[1]) for part in parts}


class _Lazy:
    """A class attribute that is created when it is first read."""

    __slots__ = ("_make", "_name")

    def __init__(self, make: Any) -> None:
        self._make = make

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, _instance: object, owner: type) -> Any:
        made = self._make()
        setattr(owner, self._name, made)
        return made
