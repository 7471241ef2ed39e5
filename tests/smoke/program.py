"""A program that smoke.py records."""

from __future__ import annotations


def called() -> None:
    """Do nothing."""


called()
raise SystemExit(3)
