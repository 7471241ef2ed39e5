"""Users' queries and PerfettoSQL's dialect give the same rows as Perfetto's trace processor."""

from __future__ import annotations

from contextlib import closing, nullcontext
from functools import cache

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")
pytest.importorskip("google.protobuf")
pytest.importorskip("perfetto")

from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.trace_processor import DUCKDB, ENGINES, SQLITE
from tests.conformance.queries import Sides
from tests.conformance.queries_corpus import make_trace, read_queries
from tests.support import oracle

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(oracle.missing() is not None, reason=str(oracle.missing())),
]

REFUSED = {
    "ancestor_slice_by_stack": "hashes of stacks are not imported",
    "topprocesses": "metrics as protobuf messages are not available",
    "no module stacks.cpu_profiling": "profiles are not imported",
    "no module linux.perf.samples": "profiles are not imported",
    "no module linux.cpu.utilization.slice": "not written",
    "graph_reachable_dfs": "not written",
}
"""Why some queries of the list are refused, by a part of the error's message."""

LACKING = {
    DUCKDB: (),
    SQLITE: (
        "round(2.675, 2)",  # SQLite before 3.43 rounds the binary number, not its digits.
        "can't be columns of other tables",
        "no table ancestor_slice_by_stack",
        "_for_thread_in_interval(t.ts, t.dur, t.utid)",  # Another form of such arguments.
    ),
}
"""Expressions, and parts of messages, that an engine alone doesn't have as the reference."""

EXPRESSIONS = """
7/2 | -7/2 | 7/2.0 | 5/0 | 5.0/0 | 1/0.0 | 3%0 | 7 %-3 | 5.5 % 2 | -7%3 | 1/2*1.0 | 'a' = 'a'
1 = '1' | 1 = 1.0 | 'a' < 1 | 1 < 'a' | '5' between 1 and 10 | 5 between 1 and 10 | true | 1=1
not 0 | 'abc' and 1 | '3x' and 1 | null and 0 | null or 1 | 5 is 5 | null is null
5 is not null | null is not 5 | 'a' is 1 | 1 in (1, 2) | 'a' in (1, 'a') | 1 not in ('1')
1 in (null) | 'A' like 'a' | 'é' like 'É' | 5 like '5' | 'a_c' like 'a_c' | 'abc' glob 'a*'
'abc' glob '[a-c]*' | 'ABC' glob 'a*' | max(1, null) | min(3, 1, 2) | max('a', 'b') | 1<<40
-1>>1 | 5 & 3 | 5|3 | ~5 | cast('12abc' as int) | cast('x' as real) | cast('1e3' as int)
cast(3.9 as int) | cast(-3.9 as int) | cast(0.5 as int) | cast('1.5' as int) | cast(5 as text)
cast(1e15 as text) | cast(null as int) | round(2.5) | round(-2.5) | round(2.675, 2) | round(7)
0.1 + 0.2 | 1e20 || '' | 1.0 || 'x' | 1 || 'x' | null || 'x' | 0.1+0.2 || ''
123456789012345678.0 || '' | typeof(1) | typeof(1.5) | typeof('a') | typeof(null)
typeof(x'01') | substr('hello', 0, 3) | substr('hello', -3, 2) | substr('hello', 2)
instr('hello', 'l') | trim('  a ') | ltrim('xxa', 'x') | replace('aba', 'a', 'c') | hex('abc')
hex(5) | length('héé') | length(12345) | length(x'c3a9') | upper('éa') | lower('ÉA')
coalesce(null, 2) | nullif(1, 1) | ifnull(null, 3) | iif(1 > 2, 'a', 'b') | iif('a' > 'b', 1, 2)
likely(3) | unicode('A') | char(65) | printf('%05.2f', 3.14159) | printf('%d', 3.9)
printf('%s', 1) | printf('%x', 255) | printf('%s-%s', 'a', 1.5) | format('%5d|%-5s|', 7, 'b')
"abc" | 'it''s' | x'00ff' | abs(-5) | sign(-2) | 9223372036854775807 | -9223372036854775808
9223372036854775808 | 1 = 1.0000000000000001 | case 1 when '1' then 'a' else 'b' end
case when 'x' then 1 else 2 end | case when null then 1 end | str_split('a:b:c', ':', 1)
str_split('a', ':', 5) | regexp_extract('abc12', '[0-9]+') | regexp_extract('abc', '([0-9]+)')
'abc' regexp 'b.' | 'abc' regexp 'B' | reverse('abc') | unhex('6162') | base64_encode(x'6162')
base64_decode('YWI=') | cast_int!('5') | cast_string!(5) | cast_double!(5) | exists (select 1)
(select 5) | (select 1 where 0) | (select count(*) from slice where name = "measure")
(select max(dur) > 5 from slice) | (select sum(dur) / 1000 from slice)
(select total(dur) from slice where 0) | (select sum(dur) from slice where 0)
(select avg(dur) from slice) | (select median(dur) from slice)
(select percentile(dur, 90) from slice)
(select group_concat(distinct depth) from slice where depth = 0)
(select count(distinct name) from slice) | (select count(*) filter (where dur > 5) from slice)
trace_start() | trace_end() | trace_dur() | slice_is_ancestor(0, 1) | slice_is_ancestor(1, 0)
extract_arg(0, 'debug.x')
(select extract_arg(arg_set_id, 'debug.msg_id') + 1 from slice where id = 1) | ln(1) | exp(0)
sqrt(4) | pow(2, 3) | ceil(1.5) | floor(-1.5) | to_realtime(5) | 1 is true
"""
"""Expressions whose values are compared, separated by ` | `."""

STATEMENTS = """
select name, max(dur) from slice

select name, min(dur), depth from slice where dur > 0 group by depth

select name from slice group by name having count(*) > 1

select depth, count() from slice group by 1 order by 1

select name n, count(*) c from slice group by n having c > 1

select count(*), count(1), 7 % 3, max( dur ) from slice

select * from (values (1, 'a'), (2, 'b')) where column1 > 1

values (1, 2), (3, 4)

select ts from slice order by parent_id, id limit 3

select id from slice order by parent_id desc, id limit 3

select id from slice limit -1

select id from slice order by id limit 2 offset 3

select s.name, t.name from slice s, thread_track t where s.track_id = t.id and s.id < 3

select id from slice where name

select id from slice where dur

select id from slice where id = '0'

select id from slice where name = 1

select id from slice where ts between '5' and '15'

select a.id, b.id from slice a left join slice b on a.parent_id = b.id and b.depth = 0

select id, (select count(*) from descendant_slice(slice.id)) as n from slice

select s.id, a.name from slice s join ancestor_slice(s.id) a

select id, (select count(*) from following_flow(slice.id)) as n from slice

select id, (select count(*) from preceding_flow(slice.id)) as n from slice

select id, (select count(*) from directly_connected_flow(slice.id)) as n from slice

select * from following_flow(1)

select * from preceding_flow(1)

select * from directly_connected_flow(3)

with recursive n(x) as (select 1 union all select x + 1 from n where x < 5) select * from n

select id, lag(ts, 1, 0) over (order by ts, id) from slice where depth = 0

select id, sum(dur) over (partition by track_id order by id) > 5 as big from slice

select row_number() over w as n, id from slice window w as (order by id desc)

select 1 union select 2 union all select 1

select 1 except select 1

select distinct depth from slice

create table mine as select 1 as a, 'x' as b; insert into mine values (2, 'y'); select * from
mine

create perfetto table t(a LONG) as select 1 as a; create or replace perfetto table t as select 2
b; select * from t

create perfetto function f(x LONG) returns LONG as select $x + 1; select f(f(1)), f(id) from
slice

create perfetto function f(x LONG) returns LONG as select max(id) from slice where id < $x;
select id, f(id) from slice

create perfetto function f(x LONG) returns TABLE(id LONG) as select id from slice where id > $x;
select s.id, f.id from slice s join f(s.id) f

create perfetto function f(x LONG) returns TABLE(id LONG) as select id from slice where id > $x;
select count(*) from f(3)

create perfetto macro m(t TableOrSubquery, c ColumnName) returns TableOrSubquery as (select $c
from $t); select * from m!(slice, name)

create perfetto table t as select 1 as a; create perfetto index i on t(a); select * from t

include perfetto module time.conversion; select time_to_ms(1999999), time_from_s(2),
time_to_us(ts), time_to_min(ts) from slice

include perfetto module slices.self_dur; select * from slice_self_dur

include perfetto module slices.with_context; select * from process_slice

include perfetto module intervals.overlap; select * from intervals_overlap_count!((select ts,
dur from slice), ts, dur)

include perfetto module intervals.overlap; select * from interval_merge_overlapping!((select ts,
dur from slice where dur > 0), 5)

include perfetto module counters.intervals; select * from counter_leading_intervals!((select id,
ts, track_id, value from counter where id < 20))

include perfetto module intervals.intersect; select * from _interval_intersect!((
(select id, ts, dur, track_id from slice where depth = 0 and dur >= 0),
(select id, ts, dur, track_id from slice where depth > 0 and dur >= 0)), (track_id))

include perfetto module intervals.intersect; select * from _interval_intersect!((
(select id, ts, dur from slice where depth = 0 and dur > 0 and track_id = 3),
(select id, ts, dur from slice where depth = 0 and dur > 0 and track_id = 4),
(select id, ts, dur from slice where depth = 0 and dur > 0 and track_id = 5)), ())

include perfetto module sched.states; select sched_state_to_human_readable_string('R+')
""".strip().split("\n\n")
"""Statements whose rows are compared, each followed by an empty line."""

SPANS = """
create table a as select 1 as ts, 10 as dur, 'x' as name, 1 as p union all select 20, 10, 'y', 1
    union all select 5, 0, 'i', 2 union all select 50, 5, 'z', 3;
create table b as select 5 as ts, 10 as dur, 7 as v, 1 as p union all select 18, 4, 8, 1
    union all select 3, 4, 9, 2 union all select 60, 1, 10, 4;
create view c as select ts, dur, v from b where p = 1;
"""

UNFINISHED = """
create perfetto table a as select 1 as ts, 10 as dur, 'x' as name, 1 as p union all
    select 11, -1, 'y', 1 union all select 3, -1, 'z', 2 union all select 9, 5, 'u', 2 union all
    select 0, 10, 'n', null union all select 30, -1, 'm', null;
create perfetto table b as select 0 as ts, 5 as dur, 7 as v, 1 as p union all
    select 8, 7, 8, 1 union all select 20, -1, 9, 1 union all select 2, 8, 10, 2 union all
    select 12, -1, 11, 2 union all select 3, 9, 12, 4 union all select 0, 5, 13, null;
create perfetto table c as select 2 as ts, 3 as dur, 1 as w union all select 10, -1, 2;
create perfetto table d as select 1 as ts, 5 as dur, 3 as k union all select 8, 4, 4;
"""
"""Spans that are not finished, or have no partition."""


@pytest.fixture(scope="module")
def trace() -> bytes:
    return make_trace()


@pytest.fixture(scope="module")
def judge(trace: bytes) -> oracle.Oracle:
    return shared_judge(trace)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def only_reads(sql: str) -> bool:
    """Returns whether a statement leaves nothing behind, so that the next one may follow it."""
    return sql.startswith(("select", "values", "with")) and ";" not in sql


@cache
def shared_processor(trace: bytes, engine: str) -> TraceProcessor:
    return TraceProcessor(trace, engine=engine)


@cache
def shared_judge(trace: bytes) -> oracle.Oracle:
    return oracle.Oracle(trace)


def ask(trace: bytes, sql: str, engine: str) -> list[tuple[object, ...]] | str:
    shared = nullcontext(shared_processor(trace, engine)) if only_reads(sql) else None
    try:
        with shared or TraceProcessor(trace, engine=engine) as processor:
            return processor.query(sql).fetchall()
    except QueryError as error:
        return str(error)


@pytest.mark.thorough
def test_users_queries_have_the_rows_of_the_reference(trace: bytes, engine: str) -> None:
    with closing(Sides(trace, engine)) as sides:
        outcomes = [sides.compare(query) for query in read_queries()]
    assert len(outcomes) >= 150
    wrong = [
        outcome
        for outcome in outcomes
        if outcome.result != "same"
        and not any(part in outcome.detail for part in (*REFUSED, *LACKING[engine]))
    ]
    assert [str(outcome) for outcome in wrong] == []
    assert sum(outcome.result == "same" for outcome in outcomes) >= 140


def test_expressions_have_the_values_of_the_reference(
    trace: bytes, judge: oracle.Oracle, engine: str
) -> None:
    expressions = [e.strip() for line in EXPRESSIONS.split("\n") for e in line.split(" | ")]
    different = []
    with TraceProcessor(trace, engine=engine) as processor:
        for expression in filter(None, expressions):
            if expression in LACKING[engine]:
                continue
            ours = ask_value(processor, expression)
            ((theirs,),) = judge.query(f"select {expression}")
            if ours != theirs or type(ours) is not type(theirs):
                different.append((expression, ours, theirs))
    assert different == []


def ask_value(processor: TraceProcessor, expression: str) -> object:
    try:
        ((value,),) = processor.query(f"select {expression}").fetchall()
    except QueryError as error:
        return str(error)
    return value


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statement_has_the_rows_of_the_reference(trace: bytes, sql: str, engine: str) -> None:
    if engine == SQLITE and "join f(s.id) f" in sql:
        assert "can't be columns of other tables" in ask(trace, sql, engine)
    else:
        assert_same(trace, sql, engine)


@pytest.mark.parametrize("kind", ["span_join", "span_left_join", "span_outer_join"])
@pytest.mark.parametrize(
    "tables", ["a partitioned p, b partitioned p", "a partitioned p, c", "c, a partitioned p"]
)
def test_span_join_has_the_rows_of_the_reference(
    trace: bytes, kind: str, tables: str, engine: str
) -> None:
    sql = f"{SPANS} create virtual table s using {kind}({tables}); select * from s"
    assert_same(trace, sql, engine)


@pytest.mark.parametrize("kind", ["span_join", "span_left_join", "span_outer_join"])
def test_span_join_without_partitions_has_the_rows_of_the_reference(
    trace: bytes, kind: str, engine: str
) -> None:
    views = f"{SPANS} create view d as select ts, dur, name as n, 5 as p from a where p = 1;"
    sql = f"{views} create virtual table s using {kind}(d, c); select * from s"
    assert_same(trace, sql, engine)


@pytest.mark.parametrize("kind", ["span_join", "span_left_join", "span_outer_join"])
@pytest.mark.parametrize(
    "tables",
    [
        "a partitioned p, b partitioned p",
        "b partitioned p, a partitioned p",
        "a partitioned p, c",
        "c, b partitioned p",
        "c, d",
    ],
)
def test_unfinished_spans_and_null_partitions_are_joined_as_in_the_reference(
    trace: bytes, kind: str, tables: str, engine: str
) -> None:
    sql = f"{UNFINISHED} create virtual table s using {kind}({tables}); select * from s"
    assert_same(trace, sql, engine)


@cache
def reference(trace: bytes, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the rows of the reference, for both engines."""
    judge = shared_judge(trace) if only_reads(sql) else oracle.Oracle(trace)
    return judge.table(sql)


def assert_same(trace: bytes, sql: str, engine: str) -> None:
    ours = ask(trace, sql, engine)
    columns, theirs = reference(trace, sql)
    kept = [i for i, name in enumerate(columns) if name not in ("stack_id", "parent_stack_id")]
    expected = [tuple(row[i] for i in kept) for row in theirs]
    assert ours == expected or sorted(map(repr, ours)) == sorted(map(repr, expected))
