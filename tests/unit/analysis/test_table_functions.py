"""Table functions that are called for each row of a join: their work grows with their result.

The traces are so large that work which grows with the square of the rows would take many minutes.
"""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from stretto.analysis import QueryError, TraceProcessor

ROWS = {"duckdb": 100_000, "sqlite": 20_000}
CHAIN = 4
"""The number of slices that flows connect, and of slices inside each other."""


def chains(rows: int) -> bytes:
    """Return a trace of slices in groups of four, which flows connect one after the other."""
    events = [
        {
            "ph": "X", "ts": number * 10, "dur": 5, "pid": 1, "tid": 1, "name": "a",
            "bind_id": number // CHAIN, "flow_out": True, "flow_in": number % CHAIN > 0,
        }
        for number in range(rows)
    ]  # fmt: skip
    return json.dumps(events).encode()


def nests(rows: int) -> bytes:
    """Return a trace of slices in groups of four, one inside the other."""
    events = [
        {
            "ph": "X", "ts": number // CHAIN * 100 + number % CHAIN,
            "dur": 50 - 2 * (number % CHAIN), "pid": 1, "tid": 1, "name": "a",
        }
        for number in range(rows)
    ]  # fmt: skip
    return json.dumps(events).encode()


def count(processor: TraceProcessor, function: str) -> int:
    sql = f"select count(*) from slice s join {function}(s.id) found"
    ((number,),) = processor.query(sql).fetchall()
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize("engine", ROWS)
def test_functions_are_called_for_each_of_many_rows(engine: str) -> None:
    if engine == "duckdb" and find_spec("duckdb") is None:
        pytest.skip("needs duckdb")
    rows = ROWS[engine]
    groups, pairs = rows // CHAIN, CHAIN * (CHAIN - 1) // 2
    with TraceProcessor(chains(rows), engine=engine) as processor:
        assert count(processor, "directly_connected_flow") == groups * CHAIN * (CHAIN - 1)
        assert count(processor, "following_flow") == groups * pairs
        assert count(processor, "preceding_flow") == groups * pairs
    with TraceProcessor(nests(rows), engine=engine) as processor:
        assert count(processor, "ancestor_slice") == groups * pairs
        assert count(processor, "descendant_slice") == groups * pairs


@pytest.mark.parametrize(
    "sql",
    [
        "create perfetto function f(x INT) returns table(n INT) as select n from f($x - 1)",
        (
            "create perfetto function f(x INT) returns table(n INT) as select $x as n; "
            "create perfetto function g(x INT) returns table(n INT) as select n from f($x); "
            "create or replace perfetto function f(x INT) returns table(n INT) as "
            "select n from g($x)"
        ),
    ],
)
def test_table_function_that_calls_itself_is_refused(sql: str) -> None:
    with (
        TraceProcessor(b"", engine="sqlite") as processor,
        pytest.raises(QueryError, match="the function f calls itself"),
    ):
        processor.query(sql)
