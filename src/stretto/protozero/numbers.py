"""How floats of 32 bits are written: with as few digits as tell them apart."""

from __future__ import annotations

import struct

_FLOAT = struct.Struct("<f")


def shortest_float(value: float) -> str:
    """The shortest decimal number that is read as this float of 32 bits."""
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if _as_float(float(text)) == value:
            return text
    return f"{value:.9g}"


def _as_float(value: float) -> float:
    try:
        (number,) = _FLOAT.unpack(_FLOAT.pack(value))
    except OverflowError:
        return float("inf")
    return float(number)
