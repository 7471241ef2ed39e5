"""Formats the line of the summary about memory."""

from __future__ import annotations

import os

from stretto.analysis.heap_totals import profiled_processes
from stretto.analysis.trace_tables import import_trace
from stretto.base.errors import DecodeError
from stretto.cli.record.summary import size_text

LARGEST_BYTES = 32 << 20
"""Of a larger trace the line is left out: reading it would take longer than a second."""


def memory_lines(path: str) -> list[str]:
    """Return a line about the process that holds most, and the function that has allocated most.

    Args:
        path: the path of the trace; "" for a pipe.

    Returns:
        No line without heap profiles, or if the trace is too large or can't be read.
    """
    try:
        if not path or os.path.getsize(path) > LARGEST_BYTES:
            return []
        processes = profiled_processes(import_trace(path))
    except (OSError, DecodeError):
        return []
    if not processes:
        return []
    first = processes[0]
    line = f"  memory: {first.name} holds {size_text(max(0, sum(first.heaps.values())))}"
    top = next((each for each in first.functions if each.self > 0), None)
    if top is not None:
        file = f" ({os.path.basename(top.file)})" if top.file else ""
        line += f", {size_text(top.self)} of it allocated by {top.name}{file}"
    return [f"{line}; `stretto summary` has more"]
