"""Excerpts of messages for a trace, without the fields marked `[debug_redact = true]`."""

from __future__ import annotations

from stretto.base.excerpts import SENSITIVE, excerpt
from stretto.protozero.codec import EnumCodec
from stretto.protozero.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from stretto.protozero.field import Field


def excerpt_of(message: Message) -> Any:
    """Return the set fields of a message by their schema names (`stretto.base.excerpts`)."""
    return excerpt(message, _parts)


def _parts(value: Any) -> Iterable[tuple[str, Any]] | None:
    return _fields(value) if isinstance(value, Message) else None


def _fields(message: Message) -> Iterable[tuple[str, Any]]:
    for name, value in message.set_fields().items():
        field = message.LAYOUT.made[name]
        yield field.proto_name, SENSITIVE if field.redact else _named(field, value)


def _named(field: Field, value: Any) -> Any:
    """Return a field's value, with enum values replaced by their names."""
    codec = field.codec
    if not isinstance(codec, EnumCodec) or isinstance(value, dict):
        return value
    if isinstance(value, list):
        return [codec.enum_class.name_of(each) for each in value]
    return codec.enum_class.name_of(value)
