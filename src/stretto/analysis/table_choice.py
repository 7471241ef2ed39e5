"""Which tables of a trace are written as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.raw_tables import names_raw_table

if TYPE_CHECKING:
    from stretto.analysis.trace_processor import TraceProcessor

ALWAYS = "slice thread process thread_track process_track track counter counter_track args".split()
"""The tables that are written even without rows, so that each trace has them."""
_REPEATED = {"slices", "instant", "counters", "sched"}
"""Views whose rows are in another table."""


def tables_to_write(trace: TraceProcessor) -> list[str]:
    """Return the names of the tables `ALWAYS`, and of the others that have rows.

    Raw events (`ftrace_event`) are left out: the trace would be read again for them.
    """
    names = [name for (name,) in trace.query("show tables").fetchall()]
    others = [
        name
        for name in names
        if name not in _REPEATED.union(ALWAYS)
        and not names_raw_table(name)
        and trace.query(f"select 1 from {name} limit 1").fetchall()
    ]
    return ALWAYS + others
