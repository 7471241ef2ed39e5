"""Shows what threads have waited for in calls of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.record.detail_lines import time_text
from stretto.cli.record.summary import and_more
from stretto.cli.text_table import as_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.analysis.io_waits import IoWait


MAX_TARGET = 50


def waits_as_text(waits: Sequence[IoWait], limit: int) -> str:
    """Return the table; "" without waits.

    Args:
        waits: The waits, those that took most time first.
        limit: The largest number of lines.
    """
    if not waits:
        return ""
    rows = [
        (time_text(each.total), each.number, time_text(each.max), each.call, _end(each.target),
         each.process)
        for each in waits[:limit]
    ]  # fmt: skip
    names = ["time", "count", "max", "in", "for", "process"]
    table = as_table(names, rows, {"time", "count", "max"})
    return f"\nWaiting for files, peers and timers\n\n{table}{and_more(len(waits), limit, 'line')}"


def _end(target: str) -> str:
    """Return the end of a long path, which says more than its begin; "-" for no target."""
    return target or "-" if len(target) <= MAX_TARGET else f"…{target[1 - MAX_TARGET :]}"
