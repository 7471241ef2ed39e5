"""Both engines have the same values, and the same errors of the same mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import stretto
from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.questions import QUESTIONS, query_of
from stretto.analysis.trace_processor import ENGINES
from tests.support.recorded_events import record

# What the engines return depends on their versions, not on CPython's.
pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here"),
]

FUNCTION = "create perfetto function f(x LONG) returns LONG as "
TABLE_FUNCTION = "create perfetto function g(x LONG) returns table(a LONG, b LONG) as "
G = "select a, b from g(7)"

category = stretto.Category("test.engines")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded:  # noqa: SIM117
        with category.slice("outer"), category.slice("inner"):
            category.instant("leaf")
    return bytes(recorded.trace)


@pytest.fixture(params=ENGINES)
def processor(trace: bytes, request: pytest.FixtureRequest) -> Iterator[TraceProcessor]:
    with TraceProcessor(trace, engine=request.param) as made:
        yield made


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select [nme] from slice", "column 8: there is no column nme. Did you mean name?"),
        ("select `nme` from slice", "column 8: there is no column nme. Did you mean name?"),
        ("select id from slice where [dru] > 5", "there is no column dru. Did you mean dur?"),
        ("select dur, 1_000 from slice", "line 1, column 13: unrecognized token: 1_000"),
        ("select 1.5e", "unrecognized token: 1.5e"),
        ("select '\ud800'", "line 1, column 9: the SQL is not valid UTF-8 here"),
        (f"{FUNCTION} select id from slice where id < $x; select f(2)", "f: multiple values were"),
        (f"{FUNCTION} values (1), (2); select f(2)", "f: multiple values were returned"),
        (f"{FUNCTION} select $x union select 2; select f(id) from slice", "f: multiple values"),
        (f"{FUNCTION} select 1, 2 from slice; select f(2)", "f has 2 columns"),
        ("create perfetto table t as select 1 as a, 2 as A", "several columns of the same name: a"),
        (f"{TABLE_FUNCTION} select $x as b, 1 as a", "the columns a, b, but its query has b, a"),
        (f"{TABLE_FUNCTION} select $x + 1", "the columns a, b, but its query has $x + 1"),
        ("select * from ancestor_slice()", "ancestor_slice has 1 argument, not 0"),
        ("select * from following_flow(1, 2)", "following_flow has 1 argument, not 2"),
        ("select rowid from slice", "column rowid"),
        ("select percentile(dur, 101) from slice", "must be a number from 0 to 100"),
        ("select percentile(dur, -1) from slice", "must be a number from 0 to 100"),
        ("select str_split('a', '', 0)", "str_split: the delimiter must be a text that is not em"),
        ("select str_split('a', ',', -1)", "str_split: the number of the field must be an integer"),
    ],
)
def test_mistake_is_an_error(processor: TraceProcessor, sql: str, problem: str) -> None:
    with pytest.raises(QueryError) as error:
        processor.query(sql).fetchall()
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ('select [depth], `name`, "nme" from slice where [id] = 1', [(1, "inner", "nme")]),
        ("\ufeffselect 1e3, .5, 0x1F", [(1000.0, 0.5, 31)]),
        (f"{FUNCTION} select id from slice where id < $x; select f(1), f(0)", [(0, None)]),
        (f"{FUNCTION} values ($x); select f(id) from slice where id > 1", [(2,)]),
        (f"{FUNCTION} select count(*) from slice where id < $x; select f(2)", [(2,)]),
        (f"{TABLE_FUNCTION} with t as (select 5 as x) select t.x as a, $x b from t; {G}", [(5, 7)]),
        (
            "select slice_is_ancestor(null,1), slice_is_ancestor(1,null), slice_is_ancestor(9,1)",
            [(None, None, None)],
        ),
        ("select sum(slice_is_ancestor(a.id, b.id)) from slice a, slice b", [(6,)]),
        ("select group_concat(x, null) from (select 'a' as x union all select 'b')", [("ab",)]),
        ("select id from slice where (id, depth) in (values (1, 1), (2, 1))", [(1,)]),
        ("select id from slice where id in (values (1), (2)) order by id", [(1,), (2,)]),
        ("select min(thread_ts + null), id from slice", [(None, 2)]),
        ("select count(*) from slice where cast(depth as text) = 1", [(1,)]),
        ("create perfetto view v as select 1 as a, 2 as a; select * from v", [(1, 2)]),
        (
            (
                "create table a as select 1 as ts, -1 as dur, 1 as p, 5 as x union all select 1, "
                "9, null, 6; create table b as select 0 as ts, 7 as dur, 1 as p, 8 as y union all "
                "select 1, 9, null, 9; create virtual table j using "
                "span_left_join(a partitioned p, b partitioned p); select * from j"
            ),
            [(1, -1, 1, 5, 8)],
        ),
    ],
)
def test_values_are_equal(
    processor: TraceProcessor, sql: str, rows: list[tuple[object, ...]]
) -> None:
    assert processor.query(sql).fetchall() == rows


@pytest.mark.parametrize("engine", ENGINES)
def test_end_beyond_64_bits_wraps_around(engine: str) -> None:
    events = [
        {"ph": "X", "name": "small", "ts": 10, "dur": 5, "pid": 1, "tid": 1},
        {"ph": "X", "name": "late", "ts": 9223372036854770, "dur": 100, "pid": 1, "tid": 1},
    ]
    with TraceProcessor(json.dumps({"traceEvents": events}).encode(), engine=engine) as processor:
        bounds = processor.query("select * from trace_bounds").fetchall()
        assert bounds == [(10_000, 15_000)]
        for question in QUESTIONS:
            processor.query(query_of(question, "*")).fetchall()


@pytest.mark.parametrize("engine", ENGINES)
def test_reals_among_arguments_are_shown_with_15_digits(engine: str) -> None:
    numbers = (1 / 3, 0.1 + 0.2, 1e300, -1e-7, 5.0, 123456789.123456789, float("-inf"))
    with record() as recorded:
        for number in numbers:
            category.instant("number", x=number)
    with TraceProcessor(recorded.trace, engine=engine) as processor:
        found = processor.query("select display_value from args where key = 'debug.x' order by id")
        assert [text for (text,) in found.fetchall()] == [
            *("0.333333333333333", "0.3", "1.0e+300", "-1.0e-07", "5.0", "123456789.123457", "-Inf")
        ]


MIXED = (10, 9, 2.5, "9", "text", True, "", -3)


@pytest.fixture(scope="module")
def mixed_trace() -> bytes:
    """A trace with an argument that has values of all types."""
    with record() as recorded:
        for value in MIXED:
            category.instant("mixed", x=value)
        category.instant("without")
    return bytes(recorded.trace)


@pytest.fixture(scope="module")
def mixed(mixed_trace: bytes) -> Iterator[list[TraceProcessor]]:
    """Both engines with that trace, and a function whose result is one of its arguments."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(TraceProcessor(mixed_trace, engine=engine)) for engine in ENGINES
        ]
        for processor in made:
            processor.query(
                "create perfetto function argument(s LONG, k STRING) returns LONG as "
                "select extract_arg($s, $k)"
            )
        yield made


@pytest.mark.parametrize("key", ["'debug.x'", "'debug.' || substr(name, 3, 1)", "$k"])
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("id from slice where {} > 9", [0, 3, 4, 6]),
        ("id from slice where 9 >= {}", [1, 2, 5, 7]),
        ("id from slice where {} = 9 or {} = 'text'", [1, 4]),
        ("id from slice where not {} between 2 and 10", [3, 4, 5, 6, 7]),
        ("id from slice where {} in (10, '9') or {} is null", [0, 3, 8]),
        ("id from slice where {} is 9", [1]),
        ("id from slice where {} is not 9", [0, 2, 3, 4, 5, 6, 7, 8]),
        ("id from slice where {} = {}", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("{} < dur + 10 from slice", [0, 1, 1, 0, 0, 1, 0, 1, None]),
        ("nullif({}, 9) is null from slice", [0, 1, 0, 0, 0, 0, 0, 0, 1]),
        ("case {} when 10 then 'a' when 'text' then 'b' end from slice", [*"a", *[None] * 3, "b"]),
        ("id from slice order by {}", [8, 7, 5, 2, 1, 0, 6, 3, 4]),
        ("id from slice order by {} desc limit 2", [4, 3]),
        ("id from (select id, {} as x from slice order by x)", [8, 7, 5, 2, 1, 0, 6, 3, 4]),
        ("id from (select {}, id from slice order by 1)", [8, 7, 5, 2, 1, 0, 6, 3, 4]),
        ("sum({} > 9) over (order by {} desc rows 1 preceding) from slice limit 2", [1, 2]),
    ],
)
def test_argument_of_several_types_is_compared_and_ordered_by_type(
    mixed: list[TraceProcessor], sql: str, expected: list[object], key: str
) -> None:
    argument = f"extract_arg(arg_set_id, {key})"
    if key == "$k":
        argument = "argument(arg_set_id, 'debug.x')"
    for processor in mixed:
        rows = processor.query("select " + sql.replace("{}", argument)).fetchall()
        assert [value for (value,) in rows][: len(expected)] == expected, processor


@pytest.mark.parametrize("function", ["max({})", "min({})", "max({}, 1)"])
def test_largest_of_an_argument_of_several_types_is_refused_with_duckdb(
    mixed_trace: bytes, function: str
) -> None:
    sql = f"select {function} from slice".replace("{}", "extract_arg(arg_set_id, 'debug.x')")
    with TraceProcessor(mixed_trace) as processor:
        with pytest.raises(QueryError, match=r"max or min of an argument .*--engine sqlite"):
            processor.query(sql)
        cast = "select max(cast(extract_arg(arg_set_id, 'debug.x') as int)) from slice"
        assert processor.query(cast).fetchall() == [(10,)]
