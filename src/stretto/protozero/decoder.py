"""Reads the fields of an encoded message without copying.

The value of a delimited field is a view of the input. The rules are the same as in Perfetto's
decoder ::

    decoder = Decoder(data)
    for field in decoder:
        if field.number == 8:
            timestamp = field.as_uint64()
    if decoder.bytes_left: ...  # the rest is malformed

Iteration stops at the end of the input and at the first malformed field: an unterminated varint,
field number 0, a tag without a value, a length or fixed-size value beyond the end, or one of the
wire types 3, 4, 6 and 7. Fields with numbers above 2**24 - 1 and delimited fields above 256 MiB
are skipped.
"""

from __future__ import annotations

try:
    from stretto._native import DecodedField, Decoder
except ImportError:
    from stretto.protozero.decoder_pure import DecodedField, Decoder  # type: ignore[assignment]

__all__ = ["MAX_FIELD_NUMBER", "DecodedField", "Decoder"]

MAX_FIELD_NUMBER = (1 << 24) - 1
"""Fields with a larger number are skipped."""
