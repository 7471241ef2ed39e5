"""Messages that are too large for a frame, in parts that mean the same together.

Protobuf allows it: messages that follow each other are one message, with their
repeated fields one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.protozero.wire import read_field

if TYPE_CHECKING:
    from collections.abc import Iterator


def split_message(encoded: bytes, limit: int) -> Iterator[bytes]:
    """Parts of a message, of at most `limit` bytes each; at least one, which may be empty.

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
