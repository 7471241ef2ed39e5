"""Edits encoded messages without decoding them.

The messages may be large, and bytes that aren't edited must not change.
"""

from __future__ import annotations

from stretto.protozero.wire import DELIMITED, read_fields

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
    for _, _, _, start, end in read_fields(encoded):
        if end - start > limit:
            continue
        if len(part) + end - start > limit:
            yield bytes(part)
            part.clear()
        part += encoded[start:end]
    yield bytes(part)


def without_field(encoded: bytes, number: int) -> bytes:
    """Return a well-formed message without the fields with this number."""
    fields = read_fields(encoded)
    return b"".join(encoded[start:end] for each, _, _, start, end in fields if each != number)


def field_bytes(encoded: bytes, number: int) -> bytes:
    """Return the message in a field, with all occurrences merged; empty if there is none.

    Raises:
        DecodeError: `encoded` is malformed.
    """
    return b"".join(
        encoded[value:end]
        for each, wire_type, value, _, end in read_fields(encoded)
        if each == number and wire_type == DELIMITED
    )
