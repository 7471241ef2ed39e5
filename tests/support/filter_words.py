"""Decodes filter bytecode, to compare the words of a generated filter."""

from __future__ import annotations

from stretto.base.errors import DecodeError
from stretto.protozero.filter.bytecode import checksum
from stretto.protozero.wire import read_varint


def decode_words(data: bytes) -> list[int]:
    """Decode the words that `encode_words` encoded.

    Raises:
        DecodeError: A varint is truncated, or the checksum is wrong or missing.
    """
    words: list[int] = []
    pos = 0
    while pos < len(data):
        word, pos = read_varint(data, pos, len(data))
        words.append(word & 0xFFFFFFFF)
    if not words or words[-1] != checksum(words[:-1]):
        raise DecodeError(
            f"The checksum of {len(words)} words of filter bytecode is wrong or missing: "
            "make it again."
        )
    return words[:-1]
