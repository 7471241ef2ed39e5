"""Shows the heap profiles of a trace: tables for each process, or values for JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.cli.record.detail_lines import time_text
from stretto.cli.record.summary import and_more, size_text
from stretto.cli.text_table import as_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.analysis.heap_totals import HoldingFunction, ProfiledProcess

_HEAD = """
Memory, estimated from samples

"self" is held of what the function itself has allocated, "total" with what it has called.
"""
_NUMBERS = {"self", "total", "grown"}


def heaps_as_text(processes: Sequence[ProfiledProcess], limit: int) -> str:
    """Return the tables; "" without heap profiles.

    Args:
        processes: The processes, the one that holds most first.
        limit: The largest number of processes, and of lines of a table.
    """
    if not processes:
        return ""
    tables = "".join(_process(each, limit) for each in processes[:limit])
    rest = and_more(len(processes), limit, "process")
    return _HEAD + tables + (f"\n{rest}" if rest else "")


def _process(process: ProfiledProcess, limit: int) -> str:
    heaps = [f"{name} {_size(size)}" for name, size in sorted(process.heaps.items()) if size]
    held = _size(sum(process.heaps.values()))
    head = f"\n{process.name} (pid {process.pid}) holds {held}: {', '.join(heaps) or 'nothing'}\n\n"
    holders = [each for each in process.functions if each.self > 0]
    text = head + _table(holders, limit, {"self": _self, "total": _total})
    if process.dumps < 2 or not holders:  # Without holders, the program ended by exec.
        return text
    time = f"{time_text(process.grown_ns)} from the first dump to the last one"
    growing = sorted(process.functions, key=lambda each: -each.self_grown)
    growing = [each for each in growing if each.self_grown > 0]
    return f"{text}\nGrown by {_size(process.grown)} in the {time}\n\n" + _table(
        growing, limit, {"grown": lambda each: _size(each.self_grown), "self": _self}
    )


def _table(
    functions: Sequence[HoldingFunction],
    limit: int,
    columns: dict[str, Callable[[HoldingFunction], str]],
) -> str:
    rows = [
        (*(column(each) for column in columns.values()), _label(each)) for each in functions[:limit]
    ]
    table = as_table([*columns, "function"], rows, _NUMBERS) if rows else "nothing\n"
    return table + and_more(len(functions), limit, "function")


def _self(function: HoldingFunction) -> str:
    return _size(function.self)


def _total(function: HoldingFunction) -> str:
    return _size(function.total)


def _size(count: int) -> str:
    return f"-{size_text(-count)}" if count < 0 else size_text(count)


def _label(function: HoldingFunction) -> str:
    file = os.path.basename(function.file)
    return f"{function.name} ({file})" if file else function.name


def heaps_as_values(
    processes: Sequence[ProfiledProcess], limit: int | None
) -> list[dict[str, object]]:
    """Return the heap profiles for JSON: sizes in bytes, times in ns."""
    return [
        process._asdict() | {"functions": [each._asdict() for each in process.functions[:limit]]}
        for process in processes[:limit]
    ]
