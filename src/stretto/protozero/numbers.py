"""How floats of 32 bits are written: with as few digits as tell them apart."""

from __future__ import annotations

import struct

MAX_FLOAT = float.fromhex("0x1.fffffep127")
"""The largest float of 32 bits that is finite."""

_FLOAT = struct.Struct("<f")


def shortest_float(value: float) -> str:
    """The shortest decimal number that is read as this float of 32 bits."""
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        # Rounded up, the largest one would be more than a reader may accept.
        if abs(float(text)) <= MAX_FLOAT and _FLOAT.unpack(_FLOAT.pack(float(text)))[0] == value:
            return text
    return repr(value)
