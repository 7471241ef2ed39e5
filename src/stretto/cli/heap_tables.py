"""Shows the heap profiles of a trace: tables for each process, or values for JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.cli.record.detail_lines import time_text
from stretto.cli.record.summary import and_more, size_text
from stretto.cli.summary_chart import Bar, Chart, with_rest
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


def _heading(process: ProfiledProcess) -> str:
    heaps = [f"{name} {_size(size)}" for name, size in sorted(process.heaps.items()) if size]
    held = _size(sum(process.heaps.values()))
    return f"{process.name} (pid {process.pid}) holds {held}: {', '.join(heaps) or 'nothing'}"


def _holders(process: ProfiledProcess) -> list[HoldingFunction]:
    return [each for each in process.functions if each.self > 0]


def _growing(process: ProfiledProcess) -> list[HoldingFunction]:
    """Return the functions that hold more than at the first dump."""
    if process.dumps < 2 or not _holders(process):  # Without holders, the program ended by exec.
        return []
    growing = sorted(process.functions, key=lambda each: -each.self_grown)
    return [each for each in growing if each.self_grown > 0]


def _process(process: ProfiledProcess, limit: int) -> str:
    head = f"\n{_heading(process)}\n\n"
    holders = _holders(process)
    text = head + _table(holders, limit, {"self": _self, "total": _total})
    if process.dumps < 2 or not holders:
        return text
    return f"{text}\n{_growth(process)}\n\n" + _table(
        _growing(process), limit, {"grown": lambda each: _size(each.self_grown), "self": _self}
    )


def _growth(process: ProfiledProcess) -> str:
    time = f"{time_text(process.grown_ns)} from the first dump to the last one"
    return f"Grown by {_size(process.grown)} in the {time}"


def heap_charts(processes: Sequence[ProfiledProcess], limit: int) -> list[Chart]:
    """Return one or two charts for each of the first processes, up to a limit."""
    charts = [chart for each in processes[:limit] for chart in _charts(each)]
    return with_rest(charts, and_more(len(processes), limit, "process"))


def _charts(process: ProfiledProcess) -> list[Chart]:
    holders = _holders(process)
    held = Chart(
        f"Memory: {_heading(process)}",
        "estimated from samples; dark: held of what the function itself has allocated; light: "
        "with what it has called",
        [_bar(each, each.self, each.total) for each in holders],
        "" if holders else "nothing",
    )
    growing = _growing(process)
    if not growing:
        return [held]
    grown = Chart(
        f"{_growth(process)}: {process.name} (pid {process.pid})",
        "dark: how much more the function holds; light: what it holds",
        [_bar(each, each.self_grown, each.self) for each in growing],
    )
    return [held, grown]


def _bar(function: HoldingFunction, main: int, wide: int) -> Bar:
    file = os.path.basename(function.file)
    return Bar(function.name, file, main, wide, _size(main), _size(wide))


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
