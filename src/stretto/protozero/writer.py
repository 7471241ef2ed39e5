"""Append-only messages: written once, front to back, into one growing buffer.

For trace packets, where a value class would be made only to be thrown away.
Generated writers have `set_x` for a singular field (and for a packed one, with
all its values), `add_x` for an element of a repeated one. For a message these
return its writer, which ends with the `with` block ::

    packet = TracePacket.Writer()
    packet.set_timestamp(now)
    with packet.set_track_event() as event:
        event.set_name("frame")
    data = packet.finish()

Rules: what is written can't be read back or changed. A message has one open
child; appending to it ends the child and everything below. Writing to an ended
message is an error.

A child's length is known only at its end: four bytes are kept for it. A child
of at most 127 bytes then moves down and gets one byte, a longer one keeps four,
a redundant varint that every decoder reads ::

    tag | n | payload                   n <= 127
    tag | n+80 n+80 n+80 n | payload    seven bits each, low ones first
"""

from __future__ import annotations

from stretto.base.errors import LocalProtocolError
from stretto.protozero.codec import MessageCodec
from stretto.protozero.field import MapField, RepeatedField
from stretto.protozero.wire import (
    DELIMITED,
    FIXED32,
    FIXED64,
    MAX_SIZE,
    SIZE_FIELD_BYTES,
    VARINT,
    redundant_varint,
    tag,
    varint,
)

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, TypeVar

    from stretto.protozero.field import Field
    from stretto.protozero.message import Layout

    W = TypeVar("W", bound="MessageWriter")

_MAX_COMPACT_SIZE = 127


class MessageWriter:
    """A message that is being written; the methods here know field numbers only."""

    __slots__ = ("_child", "_out", "_size_at")

    def __init__(self, out: bytearray | None = None, number: int = 0) -> None:
        """Start a root message, or the nested field `number` at the end of `out`."""
        self._child: MessageWriter | None = None
        self._size_at = -1
        self._out: bytearray | None = bytearray() if out is None else out
        if out is not None:
            out += tag(number, DELIMITED)
            self._size_at = len(out)
            out += bytes(SIZE_FIELD_BYTES)

    def _end(self) -> bytearray:
        """The buffer, ready to append to this message."""
        out = self._out
        if out is None:
            name = type(self).__qualname__
            raise LocalProtocolError(f"{name} has ended: open a new message and write to that")
        if self._child is not None:
            self._child.finalize()
            self._child = None
        return out

    def append_varint(self, number: int, value: int) -> None:
        """Append an integer from -2**63 to 2**64 - 1."""
        out = self._end()
        out += tag(number, VARINT)
        out += varint(value & 0xFFFFFFFFFFFFFFFF)

    def append_fixed32(self, number: int, value: int) -> None:
        """Append the low 32 bits of an integer."""
        out = self._end()
        out += tag(number, FIXED32)
        out += (value & 0xFFFFFFFF).to_bytes(4, "little")

    def append_fixed64(self, number: int, value: int) -> None:
        """Append the low 64 bits of an integer."""
        out = self._end()
        out += tag(number, FIXED64)
        out += (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")

    def append_bytes(self, number: int, data: bytes | bytearray | memoryview | str) -> None:
        """Append bytes, a string, or a message that is encoded already."""
        data = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
        out = self._end()
        out += tag(number, DELIMITED)
        out += varint(len(data))
        out += data

    def append_raw(self, data: bytes | bytearray | memoryview) -> None:
        """Append fields that are encoded already, tags included."""
        out = self._end()
        out += data

    def nested(self, number: int, writer: type[W]) -> W:
        """Open a nested message; it ends with its `with` block, or when this one goes on."""
        child = writer(self._end(), number)
        self._child = child
        return child

    def finalize(self) -> None:
        """End this message and those inside it. Doing so again does nothing."""
        if self._out is None:
            return
        out = self._end()
        self._out = None
        start = self._size_at + SIZE_FIELD_BYTES
        size = len(out) - start
        if self._size_at < 0:
            return
        if size <= _MAX_COMPACT_SIZE:
            out[self._size_at] = size
            del out[self._size_at + 1 : start]
        elif size <= MAX_SIZE:
            out[self._size_at : start] = redundant_varint(size)
        else:
            raise LocalProtocolError(f"a nested message of {size} bytes: at most {MAX_SIZE}")

    def finish(self) -> bytes:
        """End a root message and return it.

        Raises:
            LocalProtocolError: it has ended before, or is nested.
        """
        if self._size_at >= 0:
            raise LocalProtocolError("only the outermost message has bytes of its own")
        out = self._end()
        self.finalize()
        return bytes(out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.finalize()


def writer_class(layout: Layout, module: str) -> type[MessageWriter]:
    """Make the writer of a message class."""
    namespace: dict[str, Any] = {
        "__slots__": (),
        "__module__": module,
        "__qualname__": f"{layout.name}.Writer",
    }
    for field in layout.by_name.values():
        name, method = _method(field)
        namespace[name] = method
    return type("Writer", (MessageWriter,), namespace)


def _method(field: Field) -> tuple[str, Callable[..., Any]]:
    name = field.proto_name
    if isinstance(field, MapField):
        return f"add_{name}", _map_adder(field)
    if isinstance(field.codec, MessageCodec):
        verb = "add" if field.repeated else "set"
        return f"{verb}_{name}", _opener(field.number, field.codec)
    if isinstance(field, RepeatedField) and field.packed:
        return f"set_{name}", _packed_setter(field)
    return f"{'add' if field.repeated else 'set'}_{name}", _setter(field)


def _setter(field: Field) -> Callable[..., None]:
    prefix, check, pack = field.tag, field.check_element, field.codec.pack

    def append(self: MessageWriter, value: Any) -> None:
        data = pack(check(value))
        out = self._end()
        out += prefix
        out += data

    return append


def _packed_setter(field: RepeatedField) -> Callable[..., None]:
    def append(self: MessageWriter, values: Any) -> None:
        values = field.check(values)
        field.write(self._end(), values)

    return append


def _map_adder(field: MapField) -> Callable[..., None]:
    def append(self: MessageWriter, key: Any, value: Any) -> None:
        entry = field.check({key: value})
        field.write(self._end(), entry)

    return append


def _opener(number: int, codec: MessageCodec) -> Callable[..., MessageWriter]:
    def open_nested(self: MessageWriter) -> MessageWriter:
        return self.nested(number, codec.message_class.Writer)

    return open_nested
