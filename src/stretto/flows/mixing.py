"""Turning counted things into flow ids: bijections of 64 bits, so that distinct stays distinct."""

from __future__ import annotations

U64 = (1 << 64) - 1

ODD = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: multiples of it spread evenly."""


def mix64(value: int) -> int:
    """SplitMix's finaliser: one-to-one on 64 bits, and no bit of the result tells of one bit of
    the value."""
    value &= U64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & U64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & U64
    return value ^ (value >> 31)


def stream(key: int, index: int) -> int:
    """The `index`th number of the stream that `key` names; never repeats for 2^64 indexes.

    What `stretto.flow_id` computes, in Python: its model.
    """
    return mix64(key + index * ODD)


def combine(*values: int) -> int:
    """One key of several; their order counts. Never 0, which stands for "no key"."""
    key = 0
    for value in values:
        key = mix64(key ^ mix64(value + ODD))
    return key or 1
