"""Parser of the JSON format that `json_format` describes."""

from __future__ import annotations

import base64
import binascii
import re

from stretto.base.errors import ConfigError
from stretto.protozero.codec import EnumCodec, MessageCodec
from stretto.protozero.field import MapField
from stretto.protozero.message import MAX_DEPTH
from stretto.protozero.quoting import cut, quoted

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeVar

    from stretto.protozero.codec import Codec
    from stretto.protozero.field import Field
    from stretto.protozero.layout import Layout
    from stretto.protozero.message import Message

    M = TypeVar("M", bound=Message)

    Path: TypeAlias = tuple["Path | None", str, str | int]
    """The path of a value: the outer path, a format for the last part, and that part. It is only
    formatted for an error: formatting each nested path would take quadratic time."""

_INTEGER = re.compile(r"-?[0-9]+")
MAX_DIGITS = 4000
"""Longest integer in a string; Python refuses longer ones with a message about its settings."""
_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_FLOAT = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_UNKNOWN = object()
"""An enum value that is dropped."""


def from_value(value: Any, message_class: type[M], *, allow_unknown_fields: bool = False) -> M:
    """Convert the result of `json.loads` to a message.

    Raises:
        ConfigError: a value is invalid; the error contains its path.
    """
    message = message_class()
    _Reader(allow_unknown_fields).message(
        message, value, (None, "{}", message_class.LAYOUT.name), 0
    )
    return message


class _Reader:
    def __init__(self, lossy: bool) -> None:
        self._lossy = lossy

    def message(self, message: Message, value: Any, path: Path, depth: int) -> None:
        """Set the fields of a message from a JSON object."""
        if not isinstance(value, dict):
            raise _wrong(path, "an object", value)
        if depth > MAX_DEPTH:
            raise _error(path, f"messages nest deeper than {MAX_DEPTH}")
        layout, values = message.LAYOUT, vars(message)
        seen: dict[str, str] = {}
        for name, each in value.items():
            field = self._field(layout, name, path)
            # A null unsets its field, so it doesn't conflict with other fields of its oneof.
            if field is None or each is None:
                continue
            group = field.oneof or field.name
            if group in seen:
                raise _error(path, f"{name!r} and {seen[group]!r} exclude each other")
            seen[group] = name
            self._set(field, values, each, (path, ".{}", name), depth)

    def _field(self, layout: Layout, name: str, path: Path) -> Field | None:
        field = layout.by_proto_name(name) or layout.by_json_name.get(name)
        if field is None and not self._lossy:
            raise ConfigError(f"{_text(path)} has no field {quoted(name)}{layout.advice(name)}")
        return field

    def _set(
        self, field: Field, values: dict[str, Any], value: Any, path: Path, depth: int
    ) -> None:
        if isinstance(field, MapField):
            values[field.name] = self._map(field, value, path, depth)
        elif field.repeated:
            if not isinstance(value, list):
                raise _wrong(path, "an array", value)
            elements = (
                self._value(field.codec, each, (path, "[{}]", at), depth)
                for at, each in enumerate(value)
            )
            values[field.name] = [each for each in elements if each is not _UNKNOWN]
        else:
            found = self._value(field.codec, value, path, depth)
            if found is not _UNKNOWN:
                field.store(values, found)

    def _map(self, field: MapField, value: Any, path: Path, depth: int) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise _wrong(path, "an object", value)
        found = {}
        for name, each in value.items():
            inner = (path, "[{!r}]", name)
            key = _map_key(field.codec, name, inner)
            entry = self._value(field.value_codec, each, inner, depth)
            if entry is not _UNKNOWN:
                found[key] = entry
        return found

    def _value(self, codec: Codec, value: Any, path: Path, depth: int) -> Any:
        if isinstance(codec, MessageCodec):
            inner = codec.message_class()
            self.message(inner, value, path, depth + 1)
            return inner
        if isinstance(codec, EnumCodec) and isinstance(value, str):
            return self._enum(codec, value, path)
        try:
            return codec.check(_plain(codec.kind, value))
        except ValueError as error:
            raise _error(path, str(error)) from None

    def _enum(self, codec: EnumCodec, name: str, path: Path) -> Any:
        values = codec.enum_class.VALUES
        if name in values:
            return values[name]
        if self._lossy:
            return _UNKNOWN
        known = ", ".join(values)
        raise ConfigError(f"{_text(path)} has no value {quoted(name)}; it has {known}")


def _map_key(codec: Codec, name: str, path: Path) -> Any:
    key: Any = {"true": True, "false": False}.get(name, name) if codec.kind == "bool" else name
    try:
        return codec.check(_plain(codec.kind, key))
    except ValueError as error:
        raise _error(path, str(error)) from None


def _plain(kind: str, value: Any) -> Any:
    """Convert a JSON value to the value of a scalar type; wrong types raise ValueError."""
    if kind == "bool":
        return value if isinstance(value, bool) else _not(kind, value)
    if kind == "string":
        return value
    if isinstance(value, bool):
        return _not(kind, value)
    if kind == "bytes":
        return _from_base64(value)
    if kind in ("float", "double"):
        return _float(kind, value)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        if len(value) > MAX_DIGITS:
            raise ValueError(f"an integer of {len(value)} digits: no {kind} has more than 20")
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _float(kind: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value in _FLOATS:
        return _FLOATS[value]
    return float(value) if _FLOAT.fullmatch(value) else _not(kind, value)


def _from_base64(value: Any) -> Any:
    """Decode base64 in the standard or URL-safe alphabet, with or without padding."""
    if not isinstance(value, str):
        return _not("base64", value)
    text = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return _not("base64", value)


def _not(kind: str, value: Any) -> Any:
    raise ValueError(f"expected {kind}, got {quoted(value)}")


def _wrong(path: Path, kind: str, value: Any) -> ConfigError:
    return _error(path, f"expected {kind}, got {type(value).__name__}")


def _error(path: Path, complaint: str) -> ConfigError:
    return ConfigError(f"{_text(path)}: {complaint}")


def _text(path: Path) -> str:
    parts = []
    while True:
        outer, form, part = path
        parts.append(form.format(cut(part) if isinstance(part, str) else part))
        if outer is None:
            return "".join(reversed(parts))
        path = outer
