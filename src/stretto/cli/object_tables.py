"""Shows the object graphs of a trace: a table for each process, or values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.record.summary import and_more, plural, size_text
from stretto.cli.text_table import as_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.analysis.object_totals import ProcessObjects

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
    held = f"{plural(process.objects, 'object')}, {size_text(process.size)}"
    head = f"\n{process.name} (pid {process.pid}) has {held}\n\n"
    return head + as_table(["retained", "size", "objects", "type"], rows, _NUMBERS) + rest


def objects_as_values(
    processes: Sequence[ProcessObjects], limit: int | None
) -> list[dict[str, object]]:
    """Return the object graphs for JSON: sizes in bytes."""
    return [
        process._asdict() | {"types": [each._asdict() for each in process.types[:limit]]}
        for process in processes[:limit]
    ]
