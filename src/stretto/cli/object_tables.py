"""Shows the object graphs of a trace: a table for each process, or values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.record.summary import and_more, plural, size_text
from stretto.cli.summary_chart import Bar, Chart, with_rest
from stretto.cli.text_table import as_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.analysis.object_totals import HoldingType, ProcessObjects

_HEAD = """
Objects

"retained" would be free without the objects of the type: with what only they refer to.
"""
_NUMBERS = {"retained", "size", "objects"}


def objects_as_text(processes: Sequence[ProcessObjects], limit: int) -> str:
    """Return the tables; "" without object graphs.

    Args:
        processes: The processes, the largest first.
        limit: The largest number of processes, and of lines of a table.
    """
    if not processes:
        return ""
    tables = "".join(_process(each, limit) for each in processes[:limit])
    rest = and_more(len(processes), limit, "process")
    return _HEAD + tables + (f"\n{rest}" if rest else "")


def _process(process: ProcessObjects, limit: int) -> str:
    rows = [
        (size_text(each.retained), size_text(each.size), f"{each.objects:,}", each.name)
        for each in process.types[:limit]
    ]
    rest = and_more(len(process.types), limit, "type")
    return (
        f"\n{_heading(process)}\n\n"
        + as_table(["retained", "size", "objects", "type"], rows, _NUMBERS)
        + rest
    )


def _heading(process: ProcessObjects) -> str:
    held = f"{plural(process.objects, 'object')}, {size_text(process.size)}"
    return f"{process.name} (pid {process.pid}) has {held}"


def object_charts(processes: Sequence[ProcessObjects], limit: int) -> list[Chart]:
    """Return a chart for each of the first processes, up to a limit."""
    charts = [
        Chart(
            f"Objects: {_heading(process)}",
            "dark: the size of the type's objects; light: what would be free without them, with "
            "what only they refer to",
            [_bar(each) for each in process.types],
        )
        for process in processes[:limit]
    ]
    return with_rest(charts, and_more(len(processes), limit, "process"))


def _bar(each: HoldingType) -> Bar:
    texts = size_text(each.size), size_text(each.retained)
    return Bar(each.name, f"×{each.objects:,}", each.size, each.retained, *texts)


def objects_as_values(
    processes: Sequence[ProcessObjects], limit: int | None
) -> list[dict[str, object]]:
    """Return the object graphs for JSON: sizes in bytes."""
    return [
        process._asdict() | {"types": [each._asdict() for each in process.types[:limit]]}
        for process in processes[:limit]
    ]
