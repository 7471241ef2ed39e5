"""Replaces ordinals by the names of methods in the packets of a trace.

A program without a protocol's definition (a proxy, a peer of another version) traces its messages
as `ordinal 0x5f2983a99ba12ed1`. These texts are replaced in the fields below; all other bytes stay:

    Trace 1 packet ┬ 11 track_event ┬ 23 name
                   │                └ 4 debug_annotations ─ 6 string_value
                   ├ 12 interned_data ┬ 2 event_names ─ 2 name
                   │                  └ 29 debug_annotation_string_values ─ 2 str
                   └ 50 compressed_packets ─ (the same)

Source: docs/formats/track_events.md, "Fields".
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any

from stretto.base.errors import DecodeError
from stretto.protozero import wire
from stretto.protozero.decoder import DecodedField, Decoder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PREFIX = b"ordinal 0x"
_TEXT = re.compile(_PREFIX + rb"[0-9a-f]{1,16}")
_COMPRESSED = 50
_PACKET = {11: {23: None, 4: {6: None}}, 12: {2: {2: None}, 29: {2: None}}}
"""The fields that lead to texts, nested as in the packet; None marks a text."""
_MAX_INFLATED_BYTES = 256 << 20
_FIXED_SIZES = {wire.FIXED64: 8, wire.FIXED32: 4}


def method_names(libraries: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return the names of methods and events, by ordinal.

    Args:
        libraries: The parsed JSON IR of each library.
    """
    return {
        int(method["ordinal"]): str(method["name"])
        for library in libraries
        for key in ("protocol_declarations", "interface_declarations")
        for protocol in library.get(key) or ()
        for method in protocol["methods"]
    }


class Symbolizer:
    """Replaces ordinals by method names.

    Args:
        names: The names of methods by ordinal.

    Attributes:
        named: The ordinals that were replaced.
        unknown: The ordinals that have no name in `names`.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self.named: set[int] = set()
        self.unknown: set[int] = set()

    def symbolize(self, trace: bytes) -> bytes:
        """Replace the ordinals in a trace by method names.

        Raises:
            DecodeError: The bytes are not a trace, or the trace is truncated.
        """
        pieces = []
        for field in _fields(trace):
            data = bytes(field.data)
            if field.number == 1 and field.wire_type == wire.DELIMITED:
                data = self._packet(data)
            pieces.append(_encoded(field, data))
        return b"".join(pieces)

    def _packet(self, packet: bytes) -> bytes:
        fields = _fields(packet)
        if any(field.number == _COMPRESSED for field in fields):
            return b"".join(_encoded(field, self._unpacked(field)) for field in fields)
        return self._message(packet, _PACKET)

    def _unpacked(self, field: DecodedField) -> bytes:
        data = bytes(field.data)
        return self._compressed(data) if field.number == _COMPRESSED else data

    def _compressed(self, data: bytes) -> bytes:
        inflater = zlib.decompressobj()
        try:
            packets = inflater.decompress(data, _MAX_INFLATED_BYTES)
        except zlib.error as error:
            raise DecodeError(f"packets that should be compressed by deflate: {error}") from error
        if inflater.unconsumed_tail:
            raise DecodeError(f"compressed packets of more than {_MAX_INFLATED_BYTES} bytes")
        if _PREFIX not in packets:
            return data
        pieces = [
            _encoded(field, self._message(bytes(field.data), _PACKET)) for field in _fields(packets)
        ]
        return zlib.compress(b"".join(pieces))

    def _message(self, data: bytes, fields: Mapping[int, Any]) -> bytes:
        """Return a trace message with the ordinals in its texts replaced.

        Most messages contain no ordinal and are returned unchanged.
        """
        if _PREFIX not in data:
            return data
        pieces = []
        for field in _fields(data):
            inner = bytes(field.data)
            if field.number in fields and field.wire_type == wire.DELIMITED:
                below = fields[field.number]
                inner = self._text(inner) if below is None else self._message(inner, below)
            pieces.append(_encoded(field, inner))
        return b"".join(pieces)

    def _text(self, text: bytes) -> bytes:
        if _TEXT.fullmatch(text) is None:
            return text
        ordinal = int(text[len(_PREFIX) :], 16)
        name = self._names.get(ordinal)
        (self.unknown if name is None else self.named).add(ordinal)
        return text if name is None else name.encode()


def _fields(data: bytes) -> list[DecodedField]:
    decoder = Decoder(data)
    fields = list(decoder)
    if decoder.bytes_left:
        raise DecodeError(f"it breaks off {decoder.bytes_left} bytes before its end")
    return fields


def _encoded(field: DecodedField, data: bytes) -> bytes:
    """Encode a field with its old tag and new data."""
    if field.wire_type == wire.DELIMITED:
        return wire.bytes_field(field.number, data)
    if field.wire_type == wire.VARINT:
        return wire.varint_field(field.number, field.value)
    tag = wire.varint(field.number << 3 | field.wire_type)
    return tag + field.value.to_bytes(_FIXED_SIZES[field.wire_type], "little")
