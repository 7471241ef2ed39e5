"""Converts time limits of blocking functions, in seconds, to deadlines."""

from __future__ import annotations

from math import inf, isnan
from time import monotonic
from typing import Final

_AT_A_TIME_S: Final = 1_000_000.0
"""The longest wait of one system call: the argument of the call has a limited range."""


def deadline_of(timeout: float | None) -> float | None:
    """Return the deadline of a timeout that begins now, as a time of `time.monotonic`.

    Args:
        timeout: The timeout in seconds; None or infinity never ends.

    Raises:
        TypeError: The timeout is not a number.
        ValueError: The timeout is NaN.
    """
    if timeout is None or timeout == inf:
        return None
    if not isinstance(timeout, (int, float)):
        raise TypeError(f"a timeout is a number of seconds, or None, not {timeout!r}")
    if isnan(timeout):
        raise ValueError("a timeout is a number of seconds, or None, not nan")
    return monotonic() + timeout


def seconds_left(deadline: float | None) -> float:
    """Return how long to wait now, in seconds; -1 if there is no deadline.

    A long wait is cut into several shorter waits; `is_over` shows whether the deadline has passed.
    """
    return -1 if deadline is None else min(max(deadline - monotonic(), 0), _AT_A_TIME_S)


def is_over(deadline: float | None) -> bool:
    """Return whether the deadline has passed."""
    return deadline is not None and monotonic() >= deadline
