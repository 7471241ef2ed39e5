"""Errors show the place at which the user's text is wrong, not the statement's begin."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

import stretto
from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.trace_processor import ENGINES, SQLITE
from tests.support.recorded_events import record

pytestmark = pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")
HAS_DUCKDB = find_spec("duckdb") and find_spec("sqlglot")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded:
        stretto.Category("test.places").instant("event")
    return bytes(recorded.trace)


@pytest.fixture(scope="module", params=ENGINES)
def processor(request: pytest.FixtureRequest, trace: bytes) -> Iterator[TraceProcessor]:
    if request.param != SQLITE and not HAS_DUCKDB:
        pytest.skip("no DuckDB")
    with TraceProcessor(trace, engine=request.param) as made:
        yield made


def place_of_error(processor: TraceProcessor, sql: str) -> tuple[str, str]:
    """Return the text that the mark of a statement's error points at, and its problem."""
    with pytest.raises(QueryError) as raised:
        processor.query(sql)
    place, shown, mark = str(raised.value).split("\n")
    return shown[len(mark) - 1 :], place.partition(": ")[2]


@pytest.mark.parametrize(
    ("sql", "place", "problem"),
    [
        (
            "create perfetto function f(a int) returns int as\nselect foo($a); select f(1)",
            "foo($a); select f(1)",
            "there is no function foo.",
        ),
        (
            "create perfetto macro m(x Expr) returns Expr as $x + nme;\nselect\n m!(1) from slice",
            "nme;",
            "there is no column nme. Did you mean name?",
        ),
        (
            "create perfetto function g(a int) returns int as\nselect $a + $b",
            "$b",
            "$b is no argument of g",
        ),
        (
            "create perfetto function g(a int) returns table(b int) as\nselect $a + $b as b",
            "$b as b",
            "$b is no argument of g",
        ),
    ],
)
def test_bodies(processor: TraceProcessor, sql: str, place: str, problem: str) -> None:
    shown, said = place_of_error(processor, sql)
    assert shown == place
    assert said.startswith(problem)


def test_number_of_arguments(processor: TraceProcessor) -> None:
    shown, said = place_of_error(processor, "select name,\n percentile(dur) from slice")
    assert shown == "percentile(dur) from slice"
    assert "argument" in said


@pytest.mark.skipif(not HAS_DUCKDB, reason="no DuckDB")
@pytest.mark.parametrize(
    "refused",
    [
        "json_extract('{}', '$.a') from slice",
        "quote(name) from slice",
        "total(dur) filter (where dur > 1) from slice",
        "rowid from slice",
        "printf(name) from slice",
    ],
)
def test_what_duckdb_lacks(trace: bytes, refused: str) -> None:
    with TraceProcessor(trace) as processor:
        shown, said = place_of_error(processor, f"select name,\n  {refused}")
        assert shown == refused
        assert "is not available with DuckDB" in said
