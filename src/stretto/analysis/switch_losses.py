"""What the scheduling of a trace lacks: switches of CPUs to threads that the kernel did not report.

A CPU that becomes idle twice has run a thread in between. Some virtual machines leave out switches
from the idle thread, whatever filter of events is set. After one, the thread seems to wait for a
CPU until the next switch to it that is reported, as it has been woken:

    reported    waking, (missing: idle -> app), app -> idle, waking, idle -> app
    shown       R ................................................. Running
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.trace_tables import table_columns, table_rows

if TYPE_CHECKING:
    from stretto import _native

_TEXT = (
    "switches of CPUs to threads are missing: the kernel did not report them; "
    "after one, a thread seems to wait for a CPU while it runs or sleeps"
)


def switch_losses(importer: _native.TraceImporter) -> list[str]:
    """Return a line with the number of missing switches; empty if there are none."""
    rows = table_columns(importer, "__intrinsic_sched_slice", "ucpu", "utid", "ts")
    idle = {utid for utid, row in enumerate(table_rows(importer, "thread")) if row["is_idle"]}
    idle_since: dict[int, int | None] = {}
    missing = 0
    for cpu, utid, begin in rows:
        since = idle_since.get(cpu)
        # At the same time: two data sources have recorded one event.
        missing += utid in idle and since is not None and since != begin
        idle_since[cpu] = begin if utid in idle else None
    return [f"{missing:,} {_TEXT}"] if missing else []
