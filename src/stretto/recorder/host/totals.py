"""Reads what auto detail has counted in the recorded processes (`recorder.target.totals`)."""

from __future__ import annotations

import os
from typing import NamedTuple


class FunctionTotals(NamedTuple):
    """What is known of a function."""

    name: str
    file: str
    line: int
    calls: int | None
    """Number of its calls; None if some were not counted."""
    own_ns: int
    """Estimated time in the function itself."""
    total_ns: int
    """Estimated time in the function and what it called."""


class ProcessTotals(NamedTuple):
    """What one process has counted."""

    numbers: dict[str, int]
    """By name, see `_pyhooks.totals`."""
    functions: list[FunctionTotals]
    """Those that took most of the time."""


def _read_function(line: str) -> FunctionTotals:
    name, file, first_line, calls, own, total = line.split("\t")
    return FunctionTotals(
        name, file, int(first_line), int(calls) if calls else None, int(own), int(total)
    )


def read(path: str) -> ProcessTotals | None:
    """Return what a process has written; None if it isn't whole."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first, *rest = file.read().split("\n")
        words = first.split("\t")
        numbers = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return ProcessTotals(numbers, [_read_function(line) for line in rest])
    except (OSError, ValueError):
        return None


def read_all(folder: str) -> list[ProcessTotals]:
    """Return what all processes have written."""
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    return [totals for path in paths if (totals := read(path)) is not None]
