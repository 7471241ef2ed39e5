"""Read the fields of an encoded message where they lie.

Nothing is copied: the value of a delimited field is a view of the input. The
rules are those of Perfetto's decoder ::

    decoder = Decoder(data)
    for field in decoder:
        if field.number == 8:
            timestamp = field.as_uint64()
    if decoder.bytes_left: ...  # malformed from there on

Iteration ends, without moving on, at the end of the input and at whatever can't
be parsed: an unterminated varint, field number 0, a tag with nothing after it,
a length or fixed value that reaches past the end, wire types 3, 4, 6 and 7.
Fields numbered above 2**24 - 1 and delimited ones above 256 MiB are skipped.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from stretto._native import DecodedField, Decoder
else:
    try:
        from stretto._native import DecodedField, Decoder
    except ImportError:
        from stretto.protozero.decoder_pure import DecodedField, Decoder

__all__ = ["MAX_FIELD_NUMBER", "DecodedField", "Decoder"]

MAX_FIELD_NUMBER = (1 << 24) - 1
"""Fields with a larger number are skipped."""
