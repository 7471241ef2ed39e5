"""Formats the line of the summary about memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.analysis.heap_totals import profiled_processes
from stretto.analysis.trace_tables import import_trace
from stretto.cli.record.summary import size_text

if TYPE_CHECKING:
    from typing import BinaryIO


NO_DUMP = (
    "  memory: no dump was made: the program allocated next to nothing, or ended without Python's"
    " exit handlers; --heap-every 1s makes dumps while it runs"
)


def memory_lines(file: BinaryIO) -> list[str]:
    """Return a line about the process that holds most, and the function that has allocated most.

    Args:
        file: the trace.

    Returns:
        Without heap profiles, why there may be none.
    """
    processes = profiled_processes(import_trace(file))
    if not processes:
        return [NO_DUMP]
    first = processes[0]
    line = f"  memory: {first.name} holds {size_text(max(0, sum(first.heaps.values())))}"
    top = next((each for each in first.functions if each.self > 0), None)
    if top is not None:
        file_name = f" ({os.path.basename(top.file)})" if top.file else ""
        line += f", {size_text(top.self)} of it allocated by {top.name}{file_name}"
    return [f"{line}; `stretto summary` has more"]
