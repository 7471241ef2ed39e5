"""Fields of a message: encode values with their tags, and decode them.

A message stores the values of its set fields in a dict by name. Parameters called `values` are
that dict.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError
from stretto.protozero.wire import DELIMITED, read_field, read_value, tag, varint

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any

    from stretto.protozero.codec import Codec
    from stretto.protozero.wire import RawField


class Field:
    """A singular field.

    Attributes:
        name: attribute name: the name in the schema, followed by `_` if Python reserves it. For an
            extension, the full name in brackets, as in the text format.
        proto_name: name in the .proto file.
        path: name in error messages, such as `TraceConfig.duration_ms`.
        codec: codec of the value, or of the elements of a repeated field.
        implicit: whether it is a proto3 field without presence: assigning the default value
            unsets the field.
        oneof: name of the oneof group: setting one of its fields clears the others.
        rivals: names of all fields of its oneof, also its own.
        redact: whether the field has `[debug_redact = true]`: its values are not written into
            traces.
    """

    __slots__ = (
        "_json_name", "codec", "default", "implicit", "name", "number", "oneof", "path",
        "proto_name", "redact", "rivals", "tag",
    )  # fmt: skip
    repeated = False
    plain = True
    """Whether the codec alone encodes its values."""

    def __init__(self, message: str, name: str, number: int, codec: Codec) -> None:
        self.name = self.proto_name = name
        self._json_name = ""
        self.path = f"{message}.{name}"
        self.number = number
        self.codec = codec
        self.default = codec.default
        self.tag = tag(number, codec.wire_type)
        self.implicit = False
        self.oneof = ""
        self.redact = False
        self.rivals: frozenset[str] = frozenset()

    @property
    def json_name(self) -> str:
        """Name in JSON; it is computed at its first use, because most fields don't need it."""
        if not self._json_name:
            self._json_name = json_name(self.proto_name)
        return self._json_name

    @json_name.setter
    def json_name(self, name: str) -> None:
        self._json_name = name

    def unset_value(self) -> Any:
        """Return the value of the field while it is unset."""
        return self.default

    def is_set(self, values: dict[str, Any]) -> bool:
        return self.name in values

    def check(self, value: Any) -> Any:
        """Normalize a value; raise ConfigError with the field's name, type and range."""
        return self.check_element(value)

    def check_element(self, value: Any) -> Any:
        """Normalize a single value, a list element or a map key."""
        try:
            return self.codec.check(value)
        except ValueError as error:
            raise ConfigError(f"{self.path}: {error}") from None

    def store(self, values: dict[str, Any], value: Any) -> None:
        """Store a checked value, and clear the other fields of its oneof."""
        for rival in values.keys() & self.rivals:
            del values[rival]
        if self.implicit and value == self.default and str(value) != "-0.0":
            values.pop(self.name, None)
        else:
            values[self.name] = value

    def merge(self, values: dict[str, Any], value: Any) -> None:
        """Merge the value of another message into `values`."""
        if self.codec.is_message and self.name in values:
            values[self.name].merge(value)
        else:
            self.store(values, _copy(self.codec, value))

    def write(self, out: bytearray, value: Any) -> None:
        """Append the encoded field to `out`."""
        out += self.tag
        out += self.codec.pack(value)

    def read(self, values: dict[str, Any], data: bytes, raw: RawField, depth: int) -> bool:
        """Decode a field that `read_field` returned; return False if its wire type is wrong."""
        _, wire_type, value, end = raw
        codec = self.codec
        if wire_type != codec.wire_type:
            return False
        if codec.is_message and self.name in values:
            values[self.name].merge_encoded(data, value, end, depth + 1)
        else:
            self.store(values, codec.take(data, value, end, depth))
        return True


class RepeatedField(Field):
    """A repeated field: a list, encoded as one field per element or packed."""

    __slots__ = ("packed",)
    repeated = True

    def __init__(
        self, message: str, name: str, number: int, codec: Codec, packed: bool = False
    ) -> None:
        super().__init__(message, name, number, codec)
        self.packed = packed
        if packed:
            self.tag = tag(number, DELIMITED)

    def unset_value(self) -> list[Any]:
        return []

    def is_set(self, values: dict[str, Any]) -> bool:
        return bool(values.get(self.name))

    def check(self, value: Any) -> list[Any]:
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            kind = self.codec.kind
            raise ConfigError(f"{self.path}: expected a list of {kind}, got {value!r}")
        return [self.check_element(element) for element in value]

    def merge(self, values: dict[str, Any], value: Any) -> None:
        copies = [_copy(self.codec, element) for element in value]
        values.setdefault(self.name, []).extend(copies)

    def write(self, out: bytearray, value: Any) -> None:
        # The program may have changed the list since the assignment: check its elements.
        pack = self.codec.pack
        elements = [pack(element) for element in self.check(value)]
        if not elements:
            return
        if self.packed:
            out += self.tag
            out += varint(sum(map(len, elements)))
            out += b"".join(elements)
        else:
            for element in elements:
                out += self.tag
                out += element

    def read(self, values: dict[str, Any], data: bytes, raw: RawField, depth: int) -> bool:
        _, wire_type, value, end = raw
        codec = self.codec
        if wire_type == codec.wire_type:
            values.setdefault(self.name, []).append(codec.take(data, value, end, depth))
        elif wire_type == DELIMITED:
            # Decoders accept packed and unpacked fields, whichever the schema declares.
            values.setdefault(self.name, []).extend(self._unpack(data, value, end))
        else:
            return False
        return True

    def _unpack(self, data: bytes, pos: int, end: int) -> list[Any]:
        take, wire_type = self.codec.take, self.codec.wire_type
        elements = []
        while pos < end:
            raw, pos = read_value(data, pos, end, wire_type)
            elements.append(take(data, raw, pos, 0))
        return elements


class MapField(Field):
    """A map: a dict, encoded as repeated entries of key (1) and value (2)."""

    __slots__ = ("value_codec",)
    repeated = True
    plain = False

    def __init__(
        self, message: str, name: str, number: int, key_codec: Codec, value_codec: Codec
    ) -> None:
        super().__init__(message, name, number, key_codec)
        self.value_codec = value_codec
        self.tag = tag(number, DELIMITED)

    def unset_value(self) -> dict[Any, Any]:
        return {}

    def is_set(self, values: dict[str, Any]) -> bool:
        return bool(values.get(self.name))

    def check(self, value: Any) -> dict[Any, Any]:
        if not hasattr(value, "items"):
            kinds = f"{self.codec.kind} to {self.value_codec.kind}"
            raise ConfigError(f"{self.path}: expected a dict of {kinds}, got {value!r}")
        keys = [self.check_element(key) for key in value]
        try:
            return {key: self.value_codec.check(value[key]) for key in keys}
        except ValueError as error:
            raise ConfigError(f"{self.path}: {error}") from None

    def merge(self, values: dict[str, Any], value: Any) -> None:
        copies = {key: _copy(self.value_codec, each) for key, each in value.items()}
        values.setdefault(self.name, {}).update(copies)

    def write(self, out: bytearray, value: Any) -> None:
        key_tag = tag(1, self.codec.wire_type)
        value_tag = tag(2, self.value_codec.wire_type)
        for key, each in self.check(value).items():
            entry = key_tag + self.codec.pack(key) + value_tag + self.value_codec.pack(each)
            out += self.tag + varint(len(entry)) + entry

    def read(self, values: dict[str, Any], data: bytes, raw: RawField, depth: int) -> bool:
        _, wire_type, value, end = raw
        if wire_type != DELIMITED:
            return False
        codecs = {1: self.codec, 2: self.value_codec}
        entry = {1: self.codec.default, 2: None}
        while value < end:
            number, wire_type, inner, value = read_field(data, value, end)
            codec = codecs.get(number)
            if codec is not None and codec.wire_type == wire_type:
                entry[number] = codec.take(data, inner, value, depth + 1)
        if entry[2] is None:
            entry[2] = self.value_codec.unset_value()
        values.setdefault(self.name, {})[entry[1]] = entry[2]
        return True


def json_name(name: str) -> str:
    """Return the standard JSON name of a field; that of an extension is its full name."""
    if name.startswith("["):
        return name
    parts = name.split("_")
    return parts[0] + "".join(part[:1].upper() + part[1:] for part in parts[1:])


def _copy(codec: Codec, value: Any) -> Any:
    """Return a deep copy of a value."""
    return value.copy() if codec.is_message else value
