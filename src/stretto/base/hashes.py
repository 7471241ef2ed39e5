"""The hash by which Perfetto makes ids of names: FNV-1a, 64 bits."""

from __future__ import annotations

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_U64 = (1 << 64) - 1


def fnv1a(data: bytes) -> int:
    """The hash of `data`."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _U64
    return value
