"""Compares the tables of traces with those of Perfetto's trace processor, row by row.

    python tests/conformance/tables.py TRACE...

For each table it prints the number of equal rows, of rows that only one side has, and the columns
that differ. Rows are matched by their id. Arg sets are compared by their content, because their
ids depend on the order in which sets are stored.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from stretto.analysis.trace_tables import import_trace
from tests.support import oracle

if TYPE_CHECKING:
    from stretto import _native

Row = tuple[Any, ...]

BY_ID = (
    "slice",
    "__intrinsic_track",
    "counter",
    "thread",
    "process",
    "flow",
    "clock_snapshot",
    "machine",
    "__intrinsic_sched_slice",
    "__intrinsic_thread_state",
    "spurious_sched_wakeup",
    "cpu",
    "__intrinsic_cpu_freq",
    "filedescriptor",
    "stack_profile_mapping",
    "stack_profile_frame",
    "stack_profile_callsite",
    "stack_profile_symbol",
    "__intrinsic_perf_session",
    "perf_sample",
    "cpu_profile_stack_sample",
    "heap_profile_allocation",
    "profiler_smaps",
    "__intrinsic_heap_graph_object",
    "__intrinsic_heap_graph_class",
    "__intrinsic_heap_graph_reference",
    "package_list",
)
"""Tables whose rows have the same ids on both sides."""
RAW = ("__intrinsic_ftrace_event", "__intrinsic_chrome_raw")
"""The same, with arguments in a table of their own."""
BY_CONTENT = {
    "android_logs": ("ts", "utid", "prio", "tag", "msg"),
    "metadata": ("name", "key_type", "int_value", "str_value"),
    "stats": ("name", "idx", "severity", "source", "value"),
}
"""Tables that are compared as sets of rows, with the columns that are compared."""

OWN_VALUES = ("trace_uuid", "trace_config_pbtxt")
"""Metadata that the importer doesn't have."""
UNSTABLE = ("parse_trace_duration_ns", "guess_trace_type_duration_ns", "clock_sync_cache_miss")
"""Statistics that differ from run to run."""


class Difference(NamedTuple):
    """The result of the comparison of one table."""

    table: str
    equal: int
    missing: int
    extra: int
    columns: dict[str, int]
    examples: list[tuple[Any, ...]]

    @property
    def is_equal(self) -> bool:
        """Whether all rows are equal."""
        return not (self.missing or self.extra or self.columns)

    def __str__(self) -> str:
        """Format the result as a line, and examples."""
        line = f"{self.table:18} {self.equal} equal"
        if not self.is_equal:
            line += f", {self.missing} missing, {self.extra} extra, columns {self.columns}"
        return "\n    ".join([line, *map(repr, self.examples[:5])])


def read(trace: bytes) -> _native.TraceImporter:
    """Import a trace."""
    return import_trace(trace, raw_events=True)


def _arg_sets(rows: list[Row]) -> dict[int, tuple[Row, ...]]:
    """Return the content of each set; rows are (set, flat_key, key, int, string, real, type)."""
    sets: dict[int, list[Row]] = {}
    for arg_set, *arg in rows:
        sets.setdefault(arg_set, []).append(tuple(arg))
    return {arg_set: tuple(sorted(args, key=repr)) for arg_set, args in sets.items()}


def _query_args(judge: oracle.Oracle, names: tuple[str, ...]) -> list[Row]:
    """Query the args. Text is queried in hex, because it may not be UTF-8."""
    columns = ", ".join(
        f"iif({name} is null, null, hex({name}))" if name == "string_value" else name
        for name in names
    )
    place = names.index("string_value")
    rows = judge.query(f"select {columns} from args order by id")
    return [
        (*row[:place], text and bytes.fromhex(text).decode(errors="replace"), *row[place + 1 :])
        for row in rows
        for text in [row[place]]
    ]


def _resolved(names: tuple[str, ...], rows: list[Row], sets: dict[int, Any]) -> list[Row]:
    """Replace the ids of arg sets by their content."""
    places = [i for i, name in enumerate(names) if name.endswith("arg_set_id")]
    replaced = []
    for row in rows:
        values = list(row)
        for i in places:
            values[i] = sets.get(values[i]) if values[i] is not None else None
        replaced.append(tuple(values))
    return replaced


def _with_first_set(names: tuple[str, ...], rows: list[Row]) -> list[Row]:
    """Replace arg sets by the numbers from 1 on, and no arguments by 0."""
    place = names.index("arg_set_id")
    return [
        (*row[:place], 0 if row[place] is None else row[place] + 1, *row[place + 1 :])
        for row in rows
    ]


def _by_id(table: str, names: tuple[str, ...], ours: list[Row], theirs: list[Row]) -> Difference:
    equal, columns, examples = 0, Counter[str](), []
    for mine, its in zip(ours, theirs, strict=False):
        if mine == its:
            equal += 1
            continue
        different = [i for i, name in enumerate(names) if mine[i] != its[i]]
        columns.update(names[i] for i in different)
        examples.append((mine[0], *((names[i], mine[i], its[i]) for i in different)))
    missing, extra = max(0, len(theirs) - len(ours)), max(0, len(ours) - len(theirs))
    return Difference(table, equal, missing, extra, dict(columns), examples)


def _by_content(table: str, ours: list[Row], theirs: list[Row]) -> Difference:
    mine, its = Counter(ours), Counter(theirs)
    examples = [("missing", *row) for row in its - mine] + [("extra", *row) for row in mine - its]
    equal = (mine & its).total()
    return Difference(table, equal, (its - mine).total(), (mine - its).total(), {}, examples)


def _left_out(table: str, row: Row) -> bool:
    if table == "metadata":
        return row[0] in OWN_VALUES
    # Perfetto has a row for each of its 263 statistics, Stretto only for those that it counts.
    return table == "stats" and (row[4] == 0 or row[0] in UNSTABLE or row[0][:8] == "stretto_")


def compare(trace: bytes) -> list[Difference]:
    """Compare all tables."""
    importer, judge = read(trace), oracle.Oracle(trace)
    names, args = importer.rows("__intrinsic_args")
    ours = _arg_sets([row[1:] for row in args])
    theirs = _arg_sets(_query_args(judge, names[1:]))
    # In the judge's tables of raw events, 0 may also mean that there are no arguments.
    raw = {0: theirs.get(0)} | {
        arg_set + 1: args
        for arg_set, args in _arg_sets([row[1:] for row in importer.rows("_raw_args")[1]]).items()
    }
    found = []
    for table in (*BY_ID, *RAW):
        names, rows = importer.rows(table)
        if table in RAW:
            rows = _with_first_set(names, rows)
        queried = judge.query(f"select {', '.join(names)} from {table} order by {names[0]}")
        mine = _resolved(names, rows, raw if table in RAW else ours)
        found.append(_by_id(table, names, mine, _resolved(names, queried, theirs)))
    for table, columns in BY_CONTENT.items():
        names, rows = importer.rows(table)
        places = [names.index(column) for column in columns]
        mine = [tuple(row[i] for i in places) for row in rows]
        its = judge.query(f"select {', '.join(columns)} from {table}")
        found.append(
            _by_content(
                table,
                [row for row in mine if not _left_out(table, row)],
                [row for row in its if not _left_out(table, row)],
            )
        )
    return found


def main() -> int:
    """Compare the traces named on the command line; return 1 if a row differs."""
    different = 0
    for path in sys.argv[1:]:
        print(path)
        for result in compare(Path(path).read_bytes()):
            print(f"  {result}")
            different += not result.is_equal
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
