"""Shortest decimal representation of 32-bit floats."""

from __future__ import annotations

import struct

MAX_FLOAT = float.fromhex("0x1.fffffep127")
"""The largest float of 32 bits that is finite."""

_FLOAT = struct.Struct("<f")


def shortest_float(value: float) -> str:
    """Return the shortest decimal number that is parsed as this 32-bit float."""
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        # MAX_FLOAT rounded up would be out of the range that parsers accept.
        if abs(float(text)) <= MAX_FLOAT and _FLOAT.unpack(_FLOAT.pack(float(text)))[0] == value:
            return text
    return repr(value)
