"""Extracts selected fields of many messages as tuples, without creating message objects ::

    events = select(TracePacket, "timestamp", "track_event.type", "track_event.name_iid")
    timestamp, kind, name = events(packet)
    for row in Tokenizer(events).append(trace): ...

A path is a list of field names through nested messages. The value is the same as that of a typed
decoder: None for a missing field, bytes for a message, a list for a repeated field. If a nested
message on the path occurs several times, the last one is used. If a packed field is truncated,
its complete elements are returned.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError
from stretto.protozero.codec import MessageCodec
from stretto.protozero.field import MapField

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from stretto.protozero.field import Field
    from stretto.protozero.layout import Layout
    from stretto.protozero.message import Message
    from stretto.protozero.selector_pure import Row

try:
    from stretto._native import Selector
except ImportError:
    from stretto.protozero.selector_pure import Selector  # type: ignore[assignment]

__all__ = ["Selector", "select"]

_NO_COLUMN = -1


def select(message: type[Message], *paths: str) -> Selector:
    """Return a function that converts an encoded message to a tuple of the selected values.

    Args:
        message: class of the encoded messages.
        paths: field names, joined by points.

    Raises:
        ConfigError: a field doesn't exist, is a map, or is inside a field that isn't a message.
    """
    names = {path: path.split(".") for path in dict.fromkeys(paths)}
    if len(names) != len(paths):
        raise ConfigError("a path is selected twice: each makes one column")
    columns = [(parts, column) for column, parts in enumerate(names.values())]
    return Selector(len(paths), _tree(message.LAYOUT, columns))


def _tree(layout: Layout, columns: list[tuple[list[str], int]]) -> list[Row]:
    by_name: dict[str, list[tuple[list[str], int]]] = {}
    for (name, *rest), column in columns:
        by_name.setdefault(name, []).append((rest, column))
    return [_row(layout.field(name), below) for name, below in by_name.items()]


def _row(field: Field, below: list[tuple[list[str], int]]) -> Row:
    codec = field.codec
    if isinstance(field, MapField):
        raise ConfigError(f"{field.path} is a map: select the messages around it")
    column = next((column for rest, column in below if not rest), _NO_COLUMN)
    inside = [(rest, column) for rest, column in below if rest]
    if not isinstance(codec, MessageCodec):
        if inside:
            raise ConfigError(f"{field.path} is no message: there is nothing in it to select")
        return field.number, codec.kind, field.repeated, column, []
    nested = _tree(codec.message_class.LAYOUT, inside)
    return field.number, "message", field.repeated, column, nested
