"""A program that smoke.py records."""

from __future__ import annotations


def called() -> None:
    """Take longer than a microsecond: the unit of collapsed stacks, which omit shorter calls."""
    sum(range(100_000))


called()
raise SystemExit(3)
