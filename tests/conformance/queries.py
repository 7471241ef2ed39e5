"""Runs the list of queries on Stretto and on Perfetto's trace processor, and compares the rows.

    python tests/conformance/queries.py [--engine sqlite] [NUMBER...]

Prints a line per query: `same`, or what differs. Rows are compared as a set, and the columns by
which a query orders its rows in their order; reals are compared with 12 digits.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.trace_processor import DUCKDB, ENGINES
from tests.conformance.queries_corpus import Query, make_trace, read_queries
from tests.support.oracle import Oracle

Rows = list[tuple[Any, ...]]
Answer = tuple[list[str], Rows] | str

LACKING = {"stack_id", "parent_stack_id"}
"""Columns that only the trace processor v52 has."""


class Outcome(NamedTuple):
    """How a query's rows compare."""

    query: Query
    result: str
    """`same`, `refused by both`, `differs`, `refused` or `accepted` (by Stretto only)."""
    detail: str
    rows: int


def _value(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _rows(columns: list[str], rows: Rows) -> Rows:
    kept = [i for i, name in enumerate(columns) if name not in LACKING]
    return [tuple(_value(row[i]) for i in kept) for row in rows]


def _order_keys(sql: str, columns: list[str]) -> list[int]:
    """Return the columns by which the last statement orders its rows, as far as it selects them."""
    last = [part for part in sql.split(";") if part.strip()][-1]
    clause = re.search(r"(?is)order\s+by\s+([^()]*)$", last)
    if clause is None:
        return []
    keys = re.split(r",|\blimit\b", clause[1], flags=re.IGNORECASE)
    names = [re.sub(r"(?i)\s+(asc|desc)$", "", key.strip()).split(".")[-1] for key in keys]
    return [
        int(name) - 1 if name.isdigit() else columns.index(name)
        for name in names
        if (name.isdigit() and int(name) <= len(columns)) or name in columns
    ]


class Sides:
    """Stretto and Perfetto's trace processor, with the same trace.

    A statement that creates something runs on new sides, so that it can't change the results of
    other statements.
    """

    def __init__(self, trace: bytes, engine: str = DUCKDB) -> None:
        self._trace = trace
        self._engine = engine
        self._oracle = Oracle(trace)
        self._processor = TraceProcessor(trace, engine=engine)

    def compare(self, query: Query) -> Outcome:
        """Run a query on both sides."""
        if re.search(r"(?i)\b(create|insert|include)\b", query.sql):
            with TraceProcessor(self._trace, engine=self._engine) as processor:
                ours = _ask_stretto(processor, query.sql)
            return _compared(query, ours, _ask_oracle(Oracle(self._trace), query.sql))
        oracle, processor = self._oracle, self._processor
        return _compared(query, _ask_stretto(processor, query.sql), _ask_oracle(oracle, query.sql))

    def close(self) -> None:
        """Free the tables."""
        self._processor.close()


def _ask_oracle(oracle: Oracle, sql: str) -> tuple[list[str], Rows] | str:
    try:
        return oracle.table(sql)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1]


def _ask_stretto(processor: TraceProcessor, sql: str) -> tuple[list[str], Rows] | str:
    try:
        result = processor.query(sql)
        return list(result.columns), result.fetchall()
    except QueryError as error:
        return str(error)


def _compared(query: Query, ours: Answer, theirs: Answer) -> Outcome:
    if isinstance(theirs, str):
        result = "refused by both" if isinstance(ours, str) else "accepted"
        return Outcome(query, result, theirs, 0)
    if isinstance(ours, str):
        return Outcome(query, "refused", ours, len(theirs[1]))
    expected, found = _rows(*theirs), _rows(*ours)
    names = [[n for n in columns if n not in LACKING] for columns in (theirs[0], ours[0])]
    if expected and names[0] != names[1]:
        return Outcome(query, "differs", f"columns {names[1]}, expected {names[0]}", len(expected))
    equal = Counter(map(repr, expected)) == Counter(map(repr, found))
    for key in _order_keys(query.sql, names[0]):
        # Rows with equal keys come in any order.
        equal = equal and [row[key] for row in expected] == [row[key] for row in found]
    detail = "" if equal else f"{found[:3]}, expected {expected[:3]}"
    return Outcome(query, "same" if equal else "differs", detail, len(expected))


def main() -> int:
    """Compare the queries whose numbers are given, or all; return 1 if one isn't the same."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=ENGINES, default=DUCKDB)
    parser.add_argument("numbers", nargs="*", type=int)
    given = parser.parse_args()
    numbers = set(given.numbers)
    sides, counts = Sides(make_trace(), given.engine), Counter[str]()
    for query in read_queries():
        if numbers and query.number not in numbers:
            continue
        outcome = sides.compare(query)
        counts[outcome.result] += 1
        print(f"{query.number:4} {outcome.result:16} {outcome.rows:5} rows  {query.source}")
        if outcome.result not in ("same", "refused by both"):
            print(f"     {' '.join(query.sql.split())[:300]}\n     {outcome.detail[:600]}")
    print(dict(counts))
    return int(set(counts) != {"same"})


if __name__ == "__main__":
    sys.exit(main())
