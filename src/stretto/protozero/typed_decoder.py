"""Typed decoders: read the fields of an encoded message by name, without copying.

Generated messages have a `Decoder` class ::

    packet = TracePacket.Decoder(data)
    if "timestamp" in packet:
        packet.timestamp
    packet.track_event.name      # nested messages are decoders; None if absent
    packet[8]                    # the field with number 8, as a DecodedField

The constructor scans the fields once and stores the last field of each number. Values are
converted on access; repeated fields are searched on access.

The rules are those of Perfetto's decoders:

- The last occurrence of a singular field is used; messages are not merged.
- Repeated fields, packed or not, are lists in the order of the encoded message.
- Unknown fields are skipped.
- Decoding stops at malformed data: `bytes_left` is then not 0.

Bytes are views of the input, enum values are plain integers.
"""

from __future__ import annotations

from stretto.protozero.codec import DECODED_FIELD_METHODS, MessageCodec
from stretto.protozero.decoder import DecodedField, Decoder
from stretto.protozero.field import MapField
from stretto.protozero.wire import DELIMITED, FIXED32, FIXED64, VARINT

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar

    from stretto.protozero.codec import Codec
    from stretto.protozero.extension import Extension
    from stretto.protozero.field import Field
    from stretto.protozero.layout import Layout

try:
    from stretto import _native as native
except ImportError:
    from stretto.protozero import typed_decoder_pure as native  # type: ignore[no-redef]

_PACKED = {VARINT: "packed_varints", FIXED32: "packed_fixed32", FIXED64: "packed_fixed64"}


class TypedDecoder(native.IndexedMessage):
    """Base class of all generated decoders; `data` must not change while the decoder is used."""

    __slots__ = ()

    LAYOUT: ClassVar[Layout]

    def __getitem__(self, key: int | Extension[Any, Any]) -> Any:
        """Return the last field with this number as a DecodedField, or the value of an extension.

        None if there is no field with the number. The field's wire type may differ from the
        schema's.
        """
        if isinstance(key, int):
            return self._last(key)
        return _getter(self.LAYOUT.extension(key))(self)

    def __contains__(self, key: str | int | Extension[Any, Any]) -> bool:
        """Return whether a field is present, by its name, its number or its extension."""
        if not isinstance(key, int):
            layout = self.LAYOUT
            field = layout.field(key) if isinstance(key, str) else layout.extension(key)
            key = field.number
        return self._last(key) is not None

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, dict.fromkeys(field.number for field in self)))
        return f"<{type(self).__qualname__} with the fields {numbers}>"


def decoder_class(layout: Layout, module: str) -> type[TypedDecoder]:
    """Create the decoder of a message class."""
    namespace: dict[str, Any] = {
        "__slots__": (),
        "__module__": module,
        "__qualname__": f"{layout.name}.Decoder",
        "LAYOUT": layout,
    }
    for name, field in layout.by_name.items():
        namespace[name] = property(_getter(field)) if field.repeated else _singular(field)
    return native.close_decoder_class(type("Decoder", (TypedDecoder,), namespace))


def _singular(field: Field) -> native.DecoderField:
    codec = field.codec
    if isinstance(codec, MessageCodec):
        return native.DecoderField(
            field.number, "message", None, lambda: codec.message_class.Decoder
        )
    return native.DecoderField(field.number, codec.kind, field.default, None)


def _getter(field: Field) -> Callable[[TypedDecoder], Any]:
    """Return a function that reads a repeated field, a map or an extension."""
    number, codec = field.number, field.codec
    convert = _converter(codec)

    def get_map(decoder: TypedDecoder) -> Any:
        assert isinstance(field, MapField)
        return dict(_entry(field, raw) for raw in decoder._all(number))  # noqa: SLF001 – theirs

    def get_all(decoder: TypedDecoder) -> Any:
        found = decoder._all(number)  # noqa: SLF001
        return [value for raw in found for value in _elements(codec, convert, raw)]

    def get_last(decoder: TypedDecoder) -> Any:
        raw = decoder._last(number)  # noqa: SLF001
        return field.default if raw is None else convert(raw)

    if isinstance(field, MapField):
        return get_map
    return get_all if field.repeated else get_last


def _converter(codec: Codec) -> Callable[[DecodedField], Any]:
    """Return a function that converts a DecodedField to a value."""
    if isinstance(codec, MessageCodec):
        return lambda raw: codec.message_class.Decoder(raw.data)
    if codec.kind == "bytes":
        return lambda raw: raw.data
    convert: Callable[[DecodedField], Any] = getattr(
        DecodedField, DECODED_FIELD_METHODS[codec.kind]
    )
    return convert


def _elements(
    codec: Codec, convert: Callable[[DecodedField], Any], raw: DecodedField
) -> Iterator[Any]:
    """Yield the values of one occurrence of a repeated field, packed or not.

    Raises:
        DecodeError: the last element of a packed field is incomplete.
    """
    if raw.wire_type != DELIMITED or codec.wire_type == DELIMITED:
        yield convert(raw)
        return
    for element in getattr(raw, _PACKED[codec.wire_type])():
        yield codec.take(b"", element, 0, 0)


def _entry(field: MapField, raw: DecodedField) -> tuple[Any, Any]:
    key, value, codec = field.codec.default, None, field.value_codec
    for part in Decoder(raw.data):
        if part.number == 1:
            key = _converter(field.codec)(part)
        elif part.number == 2:
            value = _converter(codec)(part)
    if value is None and isinstance(codec, MessageCodec):
        value = codec.message_class.Decoder(b"")
    return key, codec.default if value is None else value
