"""The text format of messages, as in .pbtxt files: `trace --txt`, `convert`.

    config = parse_text("duration_ms: 500  buffers { size_kb: 1024 }", TraceConfig)
    print(format_text(config))

The parser accepts Perfetto's dialect, a part of protobuf's:

- `field: value`, `field { … }` or `field: { … }`, with an optional `;` after the value or message;
- strings in double quotes (consecutive strings are joined), decimal numbers, `true` and `false`,
  enum values by name, extensions as `[package.name]`;
- comments from `#` to the end of the line;
- in addition to the dialect, `inf`, `-inf` and `nan`.

Lists, commas, `<>`, single quotes, hexadecimal numbers and exponents are not supported. As in
Perfetto, integers are truncated to their width, negative ones wrap around, and an integer ends at a
decimal point.

The output can be parsed again, also by google.protobuf. Unknown fields, and enum values without a
name, can't be expressed in the dialect: they are written as comments.
"""

from __future__ import annotations

import math
from decimal import Decimal

from stretto.protozero.codec import EnumCodec
from stretto.protozero.decoder import Decoder
from stretto.protozero.field import MapField
from stretto.protozero.numbers import shortest_float
from stretto.protozero.text_literals import escape
from stretto.protozero.text_parser import parse_text
from stretto.protozero.text_source import TextFormatError
from stretto.protozero.wire import DELIMITED

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stretto.protozero.codec import Codec
    from stretto.protozero.field import Field
    from stretto.protozero.message import Message

__all__ = ["TextFormatError", "format_text", "parse_text"]


def format_text(message: Message, indent: int = 0) -> str:
    """Format a message as text, each line indented by `indent` spaces."""
    return "".join(f"{line}\n" for line in _lines(message, " " * indent))


def _lines(message: Message, indent: str) -> Iterator[str]:
    for name, value in message.set_fields().items():
        yield from _field_lines(message.LAYOUT.made[name], value, indent)
    for raw in Decoder(message.unknown_fields):
        shown = escape(bytes(raw.data), text=False) if raw.wire_type == DELIMITED else raw.value
        yield f"{indent}# {raw.number}: {shown}"


def _field_lines(field: Field, value: Any, indent: str) -> Iterator[str]:
    name = field.proto_name
    if isinstance(field, MapField):
        inner = indent + "  "
        for key, each in field.check(value).items():
            yield f"{indent}{name} {{"
            yield from _value_lines("key", field.codec, key, inner)
            yield from _value_lines("value", field.value_codec, each, inner)
            yield f"{indent}}}"
    elif field.repeated:
        for each in field.check(value):
            yield from _value_lines(name, field.codec, each, indent)
    else:
        yield from _value_lines(name, field.codec, value, indent)


def _value_lines(name: str, codec: Codec, value: Any, indent: str) -> Iterator[str]:
    if codec.is_message:
        yield f"{indent}{name} {{"
        yield from _lines(value, indent + "  ")
        yield f"{indent}}}"
        return
    shown = _shown(codec, value)
    # An enum value without a name can't be parsed again: write a comment.
    comment = "# " if codec.kind == "enum" and shown.lstrip("-").isdigit() else ""
    yield f"{indent}{comment}{name}: {shown}"


def _shown(codec: Codec, value: Any) -> str:
    if isinstance(codec, EnumCodec):
        return codec.enum_class.name_of(value)
    if codec.kind == "bool":
        return "true" if value else "false"
    if codec.kind == "string":
        return escape(value.encode("utf-8", "surrogateescape"), text=True)
    if codec.kind == "bytes":
        return escape(value, text=False)
    if codec.kind not in ("float", "double"):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    # Write no exponent: Perfetto's dialect of the text format doesn't support it.
    return format(Decimal(shortest_float(value) if codec.kind == "float" else repr(value)), "f")
