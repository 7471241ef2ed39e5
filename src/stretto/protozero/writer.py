"""Append-only messages: encoded directly into their destination.

Writers are for trace packets, which are encoded once and not used afterwards: value objects would
cost more. Generated writers have a method `set_x` for a singular field, and `add_x` for an element
of a repeated field. For a packed field, `set_x` sets all values. For a message these methods return
its writer, which ends with the `with` block ::

    packet = TracePacket.Writer()
    packet.set_timestamp(now)
    with packet.set_track_event() as event:
        event.set_name("frame")
    data = packet.finish()

A root message is written to a destination, `Writer(destination)`. By default this is a growing
buffer, and `finish()` returns the bytes. Other destinations are a writable buffer, an object with a
`write` method, and a trace writer, for which the message is a packet. A destination has received
the whole message after `finalize()`, or after the `with` block.

Rules
- Written data can't be read back or changed.
- A message has one open child. Appending to the message ends the child and its children.
- Writing to an ended message raises LocalProtocolError under `python -X dev`. Otherwise the call is
  counted and ignored, because tracing must not break the traced program.

The length of a child is known only when it ends, so four bytes are reserved for it. A child of at
most 127 bytes is then moved, so that its length takes one byte. A longer child, or one that began
in a buffer that is full, keeps the four bytes: a redundant varint that every decoder accepts ::

    tag | n | payload                   n <= 127
    tag | n+80 n+80 n+80 n | payload    seven bits each, low ones first
"""

from __future__ import annotations

from stretto.protozero.codec import MessageCodec
from stretto.protozero.field import MapField, RepeatedField
from stretto.protozero.writer_methods import python_method

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto.protozero.field import Field
    from stretto.protozero.layout import Layout
    from stretto.protozero.writer_methods import WriterMethod

try:
    from stretto import _native as native
except ImportError:
    from stretto.protozero import writer_pure as native  # type: ignore[no-redef]

__all__ = ["MessageWriter", "raise_on_writer_misuse", "writer_class", "writer_misuse_count"]

MessageWriter = native.MessageWriter
raise_on_writer_misuse = native.raise_on_writer_misuse
writer_misuse_count = native.writer_misuse_count


def writer_class(layout: Layout, module: str) -> type[MessageWriter]:
    """Create the writer of a message class."""
    namespace: dict[str, Any] = {
        "__slots__": (),
        "__module__": module,
        "__qualname__": f"{layout.name}.Writer",
    }
    methods = []
    for field in layout.by_name.values():
        if isinstance(field, MapField):
            namespace[f"add_{field.proto_name}"] = _map_adder(field)
        else:
            methods.append(_method(field))
    namespace |= {row[0]: python_method(row) for row in methods[native.MAX_WRITER_METHODS :]}
    return native.make_writer_class("Writer", methods[: native.MAX_WRITER_METHODS], namespace)


def _method(field: Field) -> WriterMethod:
    codec, number = field.codec, field.number
    packed = isinstance(field, RepeatedField) and field.packed
    verb = "add" if field.repeated and not packed else "set"
    name = f"{verb}_{field.proto_name}"
    if isinstance(codec, MessageCodec):
        return name, number, "message", False, lambda: codec.message_class.Writer
    return name, number, codec.kind, packed, field.check_element


def _map_adder(field: MapField) -> Callable[..., None]:
    def append(self: MessageWriter, key: Any, value: Any) -> None:
        entry = bytearray()
        field.write(entry, {key: value})
        self.append_raw(entry)

    return append
