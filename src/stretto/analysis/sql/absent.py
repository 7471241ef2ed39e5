"""Tables of packets that the importer doesn't read.

If all packets of a trace were read, these tables exist and have no rows: nothing is missing. If
some packets were not read, the tables don't exist: a query fails instead of giving an incomplete
answer.
"""

from __future__ import annotations

_TEXT = frozenset("name cpu_mode unwind_error cmdline build_id heap_name".split())

_COLUMNS = {
    "instruments_sample": "id ts utid callsite_id cpu",
    "gpu_slice": "id ts dur track_id category name depth parent_id arg_set_id",
}


def absent_tables() -> dict[str, str]:
    """Return the statement that creates each table or view, by name."""
    return {
        table: f'create table "{table}" ('
        + ", ".join(f'"{n}" {"varchar" if n in _TEXT else "bigint"}' for n in columns.split())
        + ")"
        for table, columns in _COLUMNS.items()
    }
