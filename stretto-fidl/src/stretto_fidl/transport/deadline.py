"""Time limits of what blocks: timeouts, as users say them, to points in time."""

from __future__ import annotations

from math import inf, isnan
from time import monotonic
from typing import Final

_AT_A_TIME_S: Final = 1_000_000.0
"""The longest that one system call is let wait: more than that overflows its argument."""


def deadline_of(timeout: float | None) -> float | None:
    """When a timeout that begins now ends, as of `time.monotonic`.

    Args:
        timeout: In seconds; None or infinity: never.

    Raises:
        TypeError: It is no number.
        ValueError: It is none, either.
    """
    if timeout is None or timeout == inf:
        return None
    if not isinstance(timeout, (int, float)):
        raise TypeError(f"a timeout is a number of seconds, or None, not {timeout!r}")
    if isnan(timeout):
        raise ValueError("a timeout is a number of seconds, or None, not nan")
    return monotonic() + timeout


def seconds_left(deadline: float | None) -> float:
    """How long to wait now; -1: for ever. It may be less than is left: look with `is_over`."""
    return -1 if deadline is None else min(max(deadline - monotonic(), 0), _AT_A_TIME_S)


def is_over(deadline: float | None) -> bool:
    """Whether the time has come."""
    return deadline is not None and monotonic() >= deadline
