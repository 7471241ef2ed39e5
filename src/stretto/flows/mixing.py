"""Bijections of 64-bit numbers, which turn counters into flow ids without collisions."""

from __future__ import annotations

U64 = (1 << 64) - 1

ODD = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: multiples of it spread evenly."""


def mix64(value: int) -> int:
    """Return SplitMix's finaliser of a value: a bijection that mixes every bit of the value."""
    value &= U64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & U64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & U64
    return value ^ (value >> 31)


def stream(key: int, index: int) -> int:
    """Return number `index` of the pseudo-random sequence of `key`.

    All 2^64 indexes give different numbers. `stretto.flow_id` computes the same in C.
    """
    return mix64(key + index * ODD)


def combine(*values: int) -> int:
    """Combine keys into one, which depends on their order, and is never 0 (0 means "no key")."""
    key = 0
    for value in values:
        key = mix64(key ^ mix64(value + ODD))
    return key or 1
