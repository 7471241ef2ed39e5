"""The JSON format of messages: protobuf's standard mapping.

    format_json(TraceConfig(duration_ms=500))       # {"durationMs": 500}
    parse_json('{"durationMs": 500}', TraceConfig)

Field names are written in lowerCamelCase; the names of the schema are also read. 64-bit integers
are strings, bytes are base64 strings, enum values are their names, maps are objects with string
keys. Unset fields are omitted; null unsets a field. `to_value` and `from_value` convert to and
from Python's dicts and lists.

Limits: unknown fields have no name and are omitted. Messages of google.protobuf with a special
JSON form (Timestamp, Any) are written like other messages: traces don't contain them.
"""

from __future__ import annotations

import base64
import json
import math

from stretto.base.errors import ConfigError
from stretto.protozero.codec import EnumCodec
from stretto.protozero.field import MapField
from stretto.protozero.json_reader import from_value
from stretto.protozero.numbers import shortest_float
from stretto.protozero.quoting import quoted

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from stretto.protozero.codec import Codec
    from stretto.protozero.field import Field
    from stretto.protozero.message import Message

    M = TypeVar("M", bound=Message)

_STRING_KINDS = {"int64", "uint64", "fixed64", "sfixed64", "sint64"}

__all__ = ["format_json", "from_value", "parse_json", "to_value"]


def format_json(message: Message, *, proto_names: bool = False, indent: int | None = None) -> str:
    """Format a message as JSON.

    Args:
        message: the message.
        proto_names: write the schema's field names instead of lowerCamelCase.
        indent: spaces per level; None for a single line.
    """
    value = to_value(message, proto_names=proto_names)
    return json.dumps(value, indent=indent, allow_nan=False)


def parse_json(text: str, message_class: type[M], *, allow_unknown_fields: bool = False) -> M:
    """Parse a message from JSON.

    Args:
        text: the JSON text.
        message_class: a generated class.
        allow_unknown_fields: ignore unknown fields and enum values.

    Raises:
        ConfigError: the text is not JSON (with line and column), or doesn't fit the message class
            (with the path of the value).
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"this is no JSON, line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except ConfigError:
        raise
    except ValueError:
        raise ConfigError(
            "this JSON holds an integer of thousands of digits: no field takes more than 20"
        ) from None
    except RecursionError:
        raise ConfigError("this JSON nests too deeply") from None
    return from_value(value, message_class, allow_unknown_fields=allow_unknown_fields)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        # Find the first name that occurs again later.
        last = {name: at for at, (name, _) in enumerate(pairs)}
        twice = next(name for at, (name, _) in enumerate(pairs) if last[name] != at)
        raise ConfigError(f"{quoted(twice)} stands twice in one JSON object")
    return values


def _no_constant(word: str) -> None:
    raise ConfigError(f'{word} is not JSON: write "{word}", as a string')


def to_value(message: Message, *, proto_names: bool = False) -> dict[str, Any]:
    """Convert a message to a dict for `json.dumps`; the arguments are those of `format_json`."""
    values = {}
    for name, value in message.set_fields().items():
        field = message.LAYOUT.made[name]
        shown = field.proto_name if proto_names else field.json_name
        values[shown] = _field_value(field, value, proto_names)
    return values


def _field_value(field: Field, value: Any, proto_names: bool) -> Any:
    if isinstance(field, MapField):
        return {
            _key(key): _value(field.value_codec, each, proto_names)
            for key, each in field.check(value).items()
        }
    if field.repeated:
        return [_value(field.codec, each, proto_names) for each in field.check(value)]
    return _value(field.codec, value, proto_names)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(codec: Codec, value: Any, proto_names: bool) -> Any:
    kind = codec.kind
    if codec.is_message:
        return to_value(value, proto_names=proto_names)
    if kind in _STRING_KINDS:
        return str(value)
    if isinstance(codec, EnumCodec):
        name = codec.enum_class.name_of(value)
        return name if name in codec.enum_class.VALUES else value
    if kind == "bytes":
        return base64.b64encode(value).decode("ascii")
    if kind in ("float", "double"):
        return _number(kind, value)
    return value


def _number(kind: str, value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(shortest_float(value)) if kind == "float" else value
