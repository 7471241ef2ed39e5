"""Reads the totals of auto detail, written by recorded processes (`recorder.target.totals`)."""

from __future__ import annotations

import os
from typing import NamedTuple


class FunctionTotals(NamedTuple):
    """The totals of one function in one process."""

    name: str
    file: str
    line: int
    calls: int | None
    """Number of its calls; None if some were not counted."""
    own_ns: int
    """Estimated CPU time in the function itself."""
    total_ns: int
    """Estimated CPU time in the function and what it called."""
    waiting_ns: int
    """Estimated time in the function itself without a CPU."""


class ProcessTotals(NamedTuple):
    """The totals of one process."""

    numbers: dict[str, int]
    """Totals of the process by name; see `_pyhooks.totals`."""
    functions: list[FunctionTotals]
    """The functions that took most of the time."""


def _read_function(line: str) -> FunctionTotals:
    name, file, first_line, calls, *times = line.split("\t")
    own, total, waiting = map(int, times)
    return FunctionTotals(
        name, file, int(first_line), int(calls) if calls else None, own, total, waiting
    )


def read(path: str) -> ProcessTotals | None:
    """Return the totals in a file; None if the file is incomplete or malformed."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first, *rest = file.read().split("\n")
        words = first.split("\t")
        numbers = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return ProcessTotals(numbers, [_read_function(line) for line in rest])
    except (OSError, ValueError):
        return None


def read_all(folder: str) -> list[ProcessTotals]:
    """Return the totals of all processes, from the files in a folder."""
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    return [totals for path in paths if (totals := read(path)) is not None]
