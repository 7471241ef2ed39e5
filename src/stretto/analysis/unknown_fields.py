"""Fields that a message's schema doesn't define. Text and JSON forms can't represent them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.protozero.decoder import Decoder
from stretto.protozero.field import MapField

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stretto.protozero.field import Field
    from stretto.protozero.message import Message


def count_unknown_fields(message: Message) -> int:
    """Return the number of unknown fields of a message and its nested messages."""
    count = sum(1 for _ in Decoder(message.unknown_fields)) if message.unknown_fields else 0
    for name, value in vars(message).items():
        for inner in _messages(message.LAYOUT.made[name], value):
            count += count_unknown_fields(inner)
    return count


def _messages(field: Field, value: Any) -> Iterator[Message]:
    if isinstance(field, MapField):
        if field.value_codec.is_message:
            yield from value.values()
    elif field.codec.is_message:
        yield from value if field.repeated else (value,)
