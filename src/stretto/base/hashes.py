"""The 64-bit FNV-1a hash, from which Perfetto derives ids of names."""

from __future__ import annotations

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_U64 = (1 << 64) - 1


def fnv1a(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash of `data`."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _U64
    return value
