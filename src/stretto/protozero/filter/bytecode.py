"""Encoding of filter bytecode: 32-bit words as varints, followed by a checksum.

A word is (field number << 3) | opcode. Source: docs/formats/protozero.md, "Filter bytecode".
"""

from __future__ import annotations

from stretto.protozero.wire import varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

END_OF_MESSAGE: Final = 0
SIMPLE_FIELD: Final = 1
SIMPLE_FIELD_RANGE: Final = 2
NESTED_FIELD: Final = 3
FILTER_STRING: Final = 4
FILTER_STRING_WITH_TYPE: Final = 5

MAX_FIELD: Final = (1 << 29) - 1

V1: Final = 1
"""Readers without support for rewriting strings."""
V2: Final = 2
"""Readers that rewrite strings, but without semantic types: these are in an overlay."""
V54: Final = 54
"""Readers that support strings with semantic types."""

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_U64 = (1 << 64) - 1
_U32 = (1 << 32) - 1


def checksum(words: Iterable[int]) -> int:
    """Return the low 32 bits of FNV-1a-64 over the words, each as four little-endian bytes."""
    digest = _FNV_OFFSET
    for word in words:
        for byte in word.to_bytes(4, "little"):
            digest = (digest ^ byte) * _FNV_PRIME & _U64
    return digest & _U32


def encode_words(words: Iterable[int]) -> bytes:
    """Encode words and their checksum."""
    words = list(words)
    return b"".join(map(varint, words)) + varint(checksum(words))
