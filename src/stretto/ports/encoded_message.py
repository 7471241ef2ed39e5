"""Encoded messages, taken apart without being decoded: they are large, or not ours to change."""

from __future__ import annotations

from stretto.protozero.wire import DELIMITED, read_field

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from collections.abc import Iterator


def split_message(encoded: bytes, limit: int) -> Iterator[bytes]:
    """Parts of a message, of at most `limit` bytes each; at least one, which may be empty.

    Together they mean the same: messages that follow each other are one message, with their
    repeated fields one after the other.

    Args:
        encoded: Well-formed. A field that is larger than `limit` by itself is left out.
        limit: At least 1.
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
    """A well-formed message without one of its fields."""
    kept = bytearray()
    at, end = 0, len(encoded)
    while at < end:
        start = at
        found, _, _, at = read_field(encoded, start, end)
        if found != number:
            kept += encoded[start:at]
    return bytes(kept)


def field_bytes(encoded: bytes, number: int) -> bytes:
    """The message in a field: what all its occurrences say together; empty if it isn't there.

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
