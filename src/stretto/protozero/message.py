"""Value classes for protobuf messages: read, write, compare, encode, decode.

Generated modules have a subclass for each message of a schema. Fields are attributes::

    config = TraceConfig(buffers=[TraceConfig.BufferConfig(size_kb=64)], duration_ms=10)
    config.data_sources.append(TraceConfig.DataSource())
    TraceConfig.decode(config.encode()) == config

Reading an unset field returns its default value:

- None for a message;
- an empty list or dict for a repeated field or map; this object is stored in the message;
- otherwise the default value of the schema, or 0, "" and the like.

Assigning None unsets a field.

Extensions are keys: `message[extension]`, see `stretto.protozero.extension`.

Values are checked when they are assigned, list elements when they are encoded. ConfigError
contains the field's name, type and range. Fields are encoded in the order of their declaration,
with minimal lengths; unknown fields follow unchanged.

`repr` shows `<sensitive>` instead of fields marked `[debug_redact = true]`, because texts of
exceptions and log records are written into traces.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError, DecodeError
from stretto.protozero.layout import Layout
from stretto.protozero.wire import read_field

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, TypeVar

    from stretto.protozero.extension import Extension
    from stretto.protozero.field import Field
    from stretto.protozero.typed_decoder import TypedDecoder
    from stretto.protozero.writer import MessageWriter

    Value = TypeVar("Value")

try:
    from stretto._native import merge_known_fields
except ImportError:

    def merge_known_fields(  # type: ignore[misc]
        _values: Any, _plan: Any, _data: Any, start: int, *_more: int
    ) -> int:
        """Decode nothing. The caller then decodes each field by its `Field`."""
        return start


MAX_DEPTH = 100
"""Maximum nesting depth of decoded messages, as in google.protobuf."""


class Message:
    """Base class of all message classes.

    The values of set fields are in the instance's `__dict__`, so reading a field is as fast as
    reading any attribute.
    """

    __slots__ = ("__dict__", "unknown_fields")

    LAYOUT: ClassVar[Layout] = Layout("Message")
    Writer: ClassVar[type[MessageWriter]]
    Decoder: ClassVar[type[TypedDecoder]]
    unknown_fields: bytes
    """Encoded fields that are not in the schema, in their original order."""

    def __init__(self, **values: Any) -> None:
        object.__setattr__(self, "unknown_fields", b"")
        for name, value in values.items():
            self._assign(self.LAYOUT.field(name), value)

    def _assign(self, field: Field, value: Any) -> None:
        if value is None:
            vars(self).pop(field.name, None)
        else:
            field.store(vars(self), field.check(value))

    def __setattr__(self, name: str, value: Any) -> None:
        field = self.LAYOUT.made.get(name) or self.LAYOUT.find(name)
        if field is not None:
            self._assign(field, value)
        elif name == "unknown_fields":
            object.__setattr__(self, name, bytes(memoryview(value)))
        else:
            self.LAYOUT.field(name)

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for names that are not in __dict__: unset fields.
        field = self.LAYOUT.made.get(name) or self.LAYOUT.find(name)
        if field is None:
            raise AttributeError(f"{self.LAYOUT.name} has no field {name!r}")
        return self._unset(field)

    def _unset(self, field: Field) -> Any:
        value = field.unset_value()
        return vars(self).setdefault(field.name, value) if field.repeated else value

    def __delattr__(self, name: str) -> None:
        self.clear(name)

    def __getitem__(self, extension: Extension[Value, Any]) -> Value:
        field = self.LAYOUT.extension(extension)
        found: Value = vars(self)[field.name] if field.name in vars(self) else self._unset(field)
        return found

    def __setitem__(self, extension: Extension[Value, Any], value: Value | None) -> None:
        self._assign(self.LAYOUT.extension(extension), value)

    def __delitem__(self, extension: Extension[Any, Any]) -> None:
        vars(self).pop(self.LAYOUT.extension(extension).name, None)

    def __contains__(self, extension: Extension[Any, Any]) -> bool:
        return self.LAYOUT.extension(extension).is_set(vars(self))

    def has(self, name: str) -> bool:
        """Return whether a field is set; a list or map is set if it isn't empty."""
        return self.LAYOUT.field(name).is_set(vars(self))

    def clear(self, name: str) -> None:
        """Unset a field."""
        vars(self).pop(self.LAYOUT.field(name).name, None)

    def which_oneof(self, oneof: str) -> str | None:
        """Return the name of the field that is set in a oneof, or None."""
        try:
            members = self.LAYOUT.oneofs[oneof]
        except KeyError:
            raise ConfigError(f"{self.LAYOUT.name} has no oneof {oneof!r}") from None
        return next(iter(vars(self).keys() & members), None)

    def encode(self) -> bytes:
        """Encode the message.

        Raises:
            ConfigError: an element of a list or map has the wrong type.
        """
        out = bytearray()
        values = vars(self)
        for name in self.LAYOUT.in_order(values):
            self.LAYOUT.made[name].write(out, values[name])
        out += self.unknown_fields
        return bytes(out)

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview) -> Self:
        """Decode a message.

        Raises:
            DecodeError: the bytes are not a valid message; the error contains the offset.
        """
        message = cls()
        message.merge_encoded(data)
        return message

    def merge_encoded(
        self,
        data: bytes | bytearray | memoryview,
        start: int = 0,
        end: int | None = None,
        depth: int = 0,
    ) -> None:
        """Decode `data[start:end]` and merge it into this message.

        Singular fields are replaced, messages merged, lists extended. `depth` is the number of
        enclosing messages.

        Raises:
            DecodeError: the bytes are not a valid message; fields before the error are merged.
        """
        if depth > MAX_DEPTH:
            raise DecodeError(f"messages nest deeper than {MAX_DEPTH} at offset {start}")
        if not isinstance(data, bytes):
            data = bytes(memoryview(data))  # memoryview() rejects an int, unlike bytes().
        pos, end = start, len(data) if end is None else min(end, len(data))
        layout, values = self.LAYOUT, vars(self)
        plan = layout.read_plan
        unknown = bytearray()
        while pos < end:
            begin = pos = merge_known_fields(values, plan, data, pos, end, depth)
            if pos >= end:
                break
            raw = read_field(data, pos, end)
            pos = raw[3]
            field = layout.numbered(raw[0])
            if field is None or not field.read(values, data, raw, depth):
                unknown += data[begin:pos]
            else:
                layout.plan(field)
        if unknown:
            self.unknown_fields += unknown

    def merge(self, other: Self) -> None:
        """Merge another message of the same class, as `merge_encoded` does."""
        for name, value in vars(other).items():
            self.LAYOUT.made[name].merge(vars(self), value)
        self.unknown_fields += other.unknown_fields

    def copy(self) -> Self:
        """Return a deep copy."""
        message = type(self)()
        message.merge(self)
        return message

    def set_fields(self) -> dict[str, Any]:
        """Return the values of set fields by name, in the order of their declaration."""
        values, fields = vars(self), self.LAYOUT.made
        names = self.LAYOUT.in_order(values)
        return {name: values[name] for name in names if fields[name].is_set(values)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or type(other) is not type(self):
            return NotImplemented
        same = self.set_fields() == other.set_fields()
        return same and self.unknown_fields == other.unknown_fields

    __hash__ = None  # type: ignore[assignment]  # a message can change

    def __repr__(self) -> str:
        from stretto.base.excerpts import SENSITIVE  # Most programs show no message.

        fields = self.LAYOUT.made
        parts = [
            f"{name}={SENSITIVE if fields[name].redact else repr(value)}"
            for name, value in self.set_fields().items()
        ]
        if self.unknown_fields:
            parts.append(f"unknown_fields={self.unknown_fields!r}")
        return f"{self.LAYOUT.name}({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).decode, (self.encode(),)
