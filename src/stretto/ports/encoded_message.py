"""Edits encoded messages without decoding them, because they are large or must not change."""

from __future__ import annotations

from stretto.protozero.wire import DELIMITED, read_field

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Iterator


def split_message(encoded: bytes, limit: int) -> Iterator[bytes]:
    """Split a message into parts of at most `limit` bytes; yields at least one part, maybe empty.

    The concatenation of the parts is the message again (protobuf merges repeated fields).

    Args:
        encoded: A well-formed message. Fields larger than `limit` are omitted.
        limit: Maximum size of a part in bytes, at least 1.
    """
    part = bytearray()
    at, end = 0, len(encoded)
    while at < end:
        start = at
        _, _, _, at = read_field(encoded, start, end)
        if at - start > limit:
            continue
        if len(part) + at - start > limit:
            yield bytes(part)
            part.clear()
        part += encoded[start:at]
    yield bytes(part)


def without_field(encoded: bytes, number: int) -> bytes:
    """Return a well-formed message without the fields with this number."""
    kept = bytearray()
    at, end = 0, len(encoded)
    while at < end:
        start = at
        found, _, _, at = read_field(encoded, start, end)
        if found != number:
            kept += encoded[start:at]
    return bytes(kept)


def field_bytes(encoded: bytes, number: int) -> bytes:
    """Return the message in a field, with all occurrences merged; empty if there is none.

    Raises:
        DecodeError: `encoded` is malformed.
    """
    found = bytearray()
    at, end = 0, len(encoded)
    while at < end:
        each, wire_type, start, at = read_field(encoded, at, end)
        if each == number and wire_type == DELIMITED:
            found += encoded[start:at]
    return bytes(found)
