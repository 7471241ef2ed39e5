"""Runs the list of queries on Stretto and on Perfetto's trace processor, and compares the rows.

    python tests/conformance/queries.py [NUMBER...]

Prints a line per query: `same`, or what differs. Rows are compared in their order if the query
orders them, else as a set; numbers by value, with a tolerance of rounding for reals.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from stretto.analysis import QueryError, TraceProcessor
from tests.conformance.queries_corpus import Query, make_trace, read_queries
from tests.support.oracle import load

Rows = list[tuple[Any, ...]]

LACKING = {"stack_id", "parent_stack_id"}
"""Columns that only v52 has."""


class Outcome(NamedTuple):
    """How a query's rows compare."""

    query: Query
    result: str
    """`same`, `refused by both`, `differs`, `refused` (by us) or `accepted` (only by us)."""
    detail: str
    rows: int


def _value(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _rows(columns: list[str], rows: Rows) -> Rows:
    kept = [i for i, name in enumerate(columns) if name not in LACKING]
    return [tuple(_value(row[i]) for i in kept) for row in rows]


def _is_ordered(sql: str) -> bool:
    last = [part for part in sql.split(";") if part.strip()][-1]
    return re.search(r"(?is)order\s+by[^()]*$", last) is not None


def _ask_oracle(trace: bytes, sql: str) -> tuple[list[str], Rows] | str:
    # A query leaves tables and views behind, so each query has its own trace processor.
    oracle = load("trace_processor").WasmTraceProcessor(trace)
    try:
        columns, rows = oracle.query(sql)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1]
    finally:
        oracle.h.store.close()
    return list(columns), rows


def _ask_stretto(trace: bytes, sql: str) -> tuple[list[str], Rows] | str:
    try:
        with TraceProcessor(trace) as processor:
            result = processor.query(sql)
            return list(result.columns), result.fetchall()
    except QueryError as error:
        return str(error)


def compare(trace: bytes, query: Query) -> Outcome:
    """Run a query on both sides."""
    theirs = _ask_oracle(trace, query.sql)
    ours = _ask_stretto(trace, query.sql)
    if isinstance(theirs, str):
        result = "refused by both" if isinstance(ours, str) else "accepted"
        return Outcome(query, result, theirs, 0)
    if isinstance(ours, str):
        return Outcome(query, "refused", ours, len(theirs[1]))
    expected, found = _rows(*theirs), _rows(*ours)
    names = [[n for n in columns if n not in LACKING] for columns in (theirs[0], ours[0])]
    if expected and names[0] != names[1]:
        return Outcome(query, "differs", f"columns {names[1]}, expected {names[0]}", len(expected))
    if _is_ordered(query.sql):
        equal = expected == found
    else:
        equal = Counter(map(repr, expected)) == Counter(map(repr, found))
    detail = "" if equal else f"{found[:3]}, expected {expected[:3]}"
    return Outcome(query, "same" if equal else "differs", detail, len(expected))


def main() -> int:
    """Compare the queries whose numbers are given, or all; return 1 if one isn't the same."""
    numbers = {int(argument) for argument in sys.argv[1:]}
    trace, counts = make_trace(), Counter[str]()
    for query in read_queries():
        if numbers and query.number not in numbers:
            continue
        outcome = compare(trace, query)
        counts[outcome.result] += 1
        print(f"{query.number:4} {outcome.result:16} {outcome.rows:5} rows  {query.source}")
        if outcome.result not in ("same", "refused by both"):
            print(f"     {' '.join(query.sql.split())[:300]}\n     {outcome.detail[:600]}")
    print(dict(counts))
    return int(set(counts) != {"same"})


if __name__ == "__main__":
    sys.exit(main())
