"""Typed decoders: the fields of one encoded message by name, read where they lie.

Generated messages have a `Decoder` beside their `Writer` ::

    packet = TracePacket.Decoder(data)
    if "timestamp" in packet:
        packet.timestamp
    packet.track_event.name      # nested ones are decoders too, None if absent
    packet[8]                    # the field numbered 8, as it stands on the wire

Making one goes through the fields once and remembers where each is; a value is
converted when it is asked for. The rules are those of Perfetto's decoders: of
a singular field the last occurrence counts (messages aren't merged), repeated
ones give a list in the order of the wire, packed or not, and fields that the
schema doesn't know are skipped. Bytes are views of the input, enum values plain
integers. What is malformed ends the message: `bytes_left` is then not 0.
"""

from __future__ import annotations

from stretto.protozero.codec import MessageCodec
from stretto.protozero.decoder import Decoder
from stretto.protozero.field import MapField
from stretto.protozero.wire import DELIMITED, FIXED32, FIXED64, VARINT

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar

    from stretto.protozero.codec import Codec
    from stretto.protozero.decoder import DecodedField
    from stretto.protozero.extension import Extension
    from stretto.protozero.field import Field
    from stretto.protozero.message import Layout

_METHODS = {
    **dict.fromkeys(("int32", "sfixed32", "enum"), "as_int32"),
    **dict.fromkeys(("int64", "sfixed64"), "as_int64"),
    **dict.fromkeys(("uint32", "fixed32"), "as_uint32"),
    **dict.fromkeys(("uint64", "fixed64"), "as_uint64"),
    **{kind: f"as_{kind}" for kind in ("sint32", "sint64", "bool", "float", "double", "string")},
}
_PACKED = {VARINT: "packed_varints", FIXED32: "packed_fixed32", FIXED64: "packed_fixed64"}


class TypedDecoder:
    """Root of all generated decoders."""

    __slots__ = ("_fields", "bytes_left")

    LAYOUT: ClassVar[Layout]

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        """Find the fields of a message; `data` must stay as it is while this is used."""
        decoder = Decoder(data)
        self._fields: dict[int, list[DecodedField]] = {}
        for field in decoder:
            self._fields.setdefault(field.number, []).append(field)
        self.bytes_left: int = decoder.bytes_left
        """Bytes that couldn't be parsed: more than 0 means malformed from there on."""

    def __getitem__(self, key: int | Extension[Any, Any]) -> Any:
        """The last field with a number as it stands on the wire, or None; or an extension's value.

        The fields of a number need not be of its schema's wire type.
        """
        if isinstance(key, int):
            found = self._fields.get(key)
            return found[-1] if found else None
        field = self.LAYOUT.extension(key)
        return read(field, self._fields.get(field.number, []))

    def __contains__(self, key: str | int | Extension[Any, Any]) -> bool:
        """Whether a field was there, by its name, its number, or its extension."""
        if not isinstance(key, int):
            layout = self.LAYOUT
            field = layout.field(key) if isinstance(key, str) else layout.extension(key)
            key = field.number
        return key in self._fields

    def __iter__(self) -> Iterator[DecodedField]:
        """All fields as they stand on the wire, those of one number together."""
        for found in self._fields.values():
            yield from found

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, self._fields))
        return f"<{type(self).__qualname__} with the fields {numbers}>"


class _Accessor:
    """The attribute of a field in a decoder class."""

    __slots__ = ("_field",)

    def __init__(self, field: Field) -> None:
        self._field = field

    def __get__(self, decoder: TypedDecoder | None, _owner: type) -> Any:
        if decoder is None:
            return self
        return read(self._field, decoder._fields.get(self._field.number, []))


def decoder_class(layout: Layout, module: str) -> type[TypedDecoder]:
    """Make the decoder of a message class."""
    namespace: dict[str, Any] = {
        "__slots__": (),
        "__module__": module,
        "__qualname__": f"{layout.name}.Decoder",
        "LAYOUT": layout,
    }
    namespace |= {name: _Accessor(field) for name, field in layout.by_name.items()}
    return type("Decoder", (TypedDecoder,), namespace)


def read(field: Field, found: list[DecodedField]) -> Any:
    """The value of a field from all its occurrences.

    Raises:
        DecodeError: an element of a packed field is cut off.
    """
    if isinstance(field, MapField):
        return dict(_entry(field, raw) for raw in found)
    if field.repeated:
        return [value for raw in found for value in _elements(field.codec, raw)]
    return _value(field.codec, found[-1]) if found else field.default


def _value(codec: Codec, raw: DecodedField) -> Any:
    if isinstance(codec, MessageCodec):
        return codec.message_class.Decoder(raw.data)
    if codec.kind == "bytes":
        return raw.data
    return getattr(raw, _METHODS[codec.kind])()


def _elements(codec: Codec, raw: DecodedField) -> Iterator[Any]:
    if raw.wire_type != DELIMITED or codec.wire_type == DELIMITED:
        yield _value(codec, raw)
        return
    for element in getattr(raw, _PACKED[codec.wire_type])():
        yield codec.take(b"", element, 0, 0)


def _entry(field: MapField, raw: DecodedField) -> tuple[Any, Any]:
    key, value, codec = field.codec.default, None, field.value_codec
    for part in Decoder(raw.data):
        if part.number == 1:
            key = _value(field.codec, part)
        elif part.number == 2:
            value = _value(codec, part)
    if value is None and isinstance(codec, MessageCodec):
        value = codec.message_class.Decoder(b"")
    return key, codec.default if value is None else value
