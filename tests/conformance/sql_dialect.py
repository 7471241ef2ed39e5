"""Compares SQL expressions and statements with Perfetto's trace processor.

    python tests/conformance/sql_dialect.py [--engine sqlite] [--all] [PART]

The expressions and statements are in the folder `dialect`; only those that contain PART are
compared. Prints those that differ; with --all, also the others, each with its outcome:

same       the rows are equal, also the types of their values
refused    by Stretto alone, with an error that says what is not available
both       both refuse it
accepted   by Stretto alone
different  the rows differ, or the error doesn't say what is not available
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.trace_processor import DUCKDB, ENGINES
from tests.conformance.queries_corpus import make_trace
from tests.support.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "dialect"

ROWS = """
create table v as
select 1 as i, 1.5 as r, 'a' as t, null as n, cast('61' as blob) as b
union all select 2, 2.0, '1', null, x'00ff'
union all select 3, -0.5, 'B', null, x''
union all select 5, 1e15, 'é', null, null;
create table w as select 5 as x union all select 7;
"""
"""The tables of the expressions: columns of each type, and one without values."""

MIXED = "select 1 as x union all select 'a' union all select 2.5 union all select null union all "
MIXED += "select '1' union all select x'61'"
"""The rows of `mixed`: values of all types in one column."""

FORMS = {
    "operators.txt": "select {}",
    "functions.txt": "select {}",
    "aggregates.txt": "select {} from v",
    "rows.txt": "select i, {} from v",
}
"""The statement that each file's expressions are part of."""

NAMED = ("--engine sqlite", "engine sqlite")
"""What each error of a construct that is not available has."""


class Outcome(NamedTuple):
    """How a statement compares."""

    sql: str
    result: str
    detail: str


def statements() -> Iterator[str]:
    """Yield all statements of the folder."""
    for name, form in FORMS.items():
        for line in re.split(r"\n(?!b'$)", (FOLDER / name).read_text()):
            if line.strip() and not line.startswith("#"):
                yield form.format(line)
    yield from (FOLDER / "statements.sql").read_text().strip().split("\n\n")


class Sides:
    """Stretto and Perfetto's trace processor, with the same trace and the tables above.

    A statement that creates something runs on new sides.
    """

    def __init__(self, trace: bytes, engine: str = DUCKDB) -> None:
        self._trace = trace
        self._engine = engine
        self._ours = self._new_ours()
        self._theirs = self._new_theirs()

    def _new_ours(self) -> TraceProcessor:
        processor = TraceProcessor(self._trace, engine=self._engine)
        processor.query(ROWS)
        return processor

    def _new_theirs(self) -> Oracle:
        oracle = Oracle(self._trace)
        oracle.table(ROWS)
        return oracle

    def compare(self, sql: str) -> Outcome:
        """Run a statement on both sides."""
        sql = sql.replace("from mixed", f"from ({MIXED})")
        ours, theirs = self._ours, self._theirs
        if re.search(r"(?i)\b(create|insert|include)\b", sql):
            ours, theirs = self._new_ours(), self._new_theirs()
        answer, expected = _ask_stretto(ours, sql), _ask_oracle(theirs, sql)
        if ours is not self._ours:
            ours.close()
        return _outcome(sql, answer, expected)

    def close(self) -> None:
        """Free the tables."""
        self._ours.close()


Answer = tuple[list[str], list[tuple[Any, ...]]] | str


def _ask_oracle(oracle: Oracle, sql: str) -> Answer:
    try:
        return oracle.table(sql)
    except (RuntimeError, TypeError, ValueError) as error:
        return str(error).strip().splitlines()[-1]


def _ask_stretto(processor: TraceProcessor, sql: str) -> Answer:
    try:
        result = processor.query(sql)
        return list(result.columns), result.fetchall()
    except QueryError as error:
        return str(error)
    except Exception as error:  # Every other error is a defect, which the report names.
        return f"{type(error).__name__}: {error}"


def _outcome(sql: str, ours: Answer, theirs: Answer) -> Outcome:
    if isinstance(theirs, str):
        return Outcome(sql, "both" if isinstance(ours, str) else "accepted", f"{ours}\n{theirs}")
    if isinstance(ours, str):
        named = any(part in ours for part in NAMED)
        return Outcome(sql, "refused" if named else "different", ours)
    if _equal(sql, ours[1], theirs[1]) and (ours[0] == theirs[0] or not theirs[1]):
        return Outcome(sql, "same", "")
    columns = "" if ours[0] == theirs[0] else f"\n  columns {ours[0]}, expected {theirs[0]}"
    return Outcome(sql, "different", f"{ours[1]!r:.300}\n  expected {theirs[1]!r:.300}{columns}")


def _equal(sql: str, ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> bool:
    found, expected = ([tuple(map(_value, row)) for row in rows] for rows in (ours, theirs))
    if re.search(r"(?i)\border by\b[^()]*$", sql):
        return found == expected
    return Counter(found) == Counter(expected)


def _value(value: Any) -> str:
    """Return a text that differs for values of different types."""
    return f"{value:.14g}r" if isinstance(value, float) else repr(value)


def main() -> int:
    """Compare the statements; return 1 if one is different."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=ENGINES, default=DUCKDB)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("part", nargs="?", default="")
    given = parser.parse_args()
    sides, counts = Sides(make_trace(), given.engine), Counter[str]()
    for sql in statements():
        if given.part in sql:
            outcome = sides.compare(sql)
            counts[outcome.result] += 1
            if given.all or outcome.result == "different":
                print(f"{outcome.result:9} {outcome.sql}\n  {outcome.detail}")
    print(", ".join(f"{number} {result}" for result, number in counts.most_common()))
    return int(counts["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
