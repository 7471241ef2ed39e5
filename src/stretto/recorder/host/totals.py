"""Reads the totals of auto detail, written by recorded processes (`recorder.target.totals`)."""

from __future__ import annotations

import os


class FunctionTotals:
    """The totals of one function in one process.

    Args:
        name: the name of the function.
        file: the file with its code.
        line: the first line of its code.
        calls: number of its calls; None if some were not counted.
        own_ns: estimated CPU time in the function itself.
        total_ns: estimated CPU time in the function and what it called.
        waiting_ns: estimated time in the function itself without a CPU.
    """

    def __init__(  # noqa: PLR0917  # the columns of a table
        self,
        name: str,
        file: str,
        line: int,
        calls: int | None,
        own_ns: int,
        total_ns: int,
        waiting_ns: int,
    ) -> None:
        self.name = name
        self.file = file
        self.line = line
        self.calls = calls
        self.own_ns = own_ns
        self.total_ns = total_ns
        self.waiting_ns = waiting_ns


class ProcessTotals:
    """The totals of one process.

    Args:
        numbers: totals of the process by name; see `_pyhooks.totals`.
        functions: the functions that took most of the time.
    """

    def __init__(self, numbers: dict[str, int], functions: list[FunctionTotals]) -> None:
        self.numbers = numbers
        self.functions = functions


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
