"""PerfettoSQL's statements, and the errors of statements that are wrong or not supported."""

from __future__ import annotations

import contextlib
import sqlite3
from importlib.util import find_spec
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import stretto
from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.sql import recursion
from tests.support.recorded_events import record

category = stretto.Category("test.sql")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded:
        with category.slice("outer", size=3, ratio=0.5, label="x", on=True):
            category.instant("inside")
        category.counter("queue", 7)
    return bytes(recorded.trace)


@pytest.fixture
def processor(trace: bytes) -> TraceProcessor:
    return TraceProcessor(trace)


@pytest.fixture(scope="module")
def shared(trace: bytes) -> TraceProcessor:
    """A processor for several tests. No two of them may create the same name."""
    return TraceProcessor(trace)


@pytest.fixture(scope="module")
def nested() -> TraceProcessor:
    with record() as recorded, category.slice("0"):
        for name in ("1", "2"):
            with category.slice(name), category.slice(f"{name}.1"):
                category.instant(f"{name}.1.1")
    return TraceProcessor(bytes(recorded.trace))


def value(processor: TraceProcessor, expression: str) -> object:
    ((found,),) = processor.query(f"select {expression}").fetchall()
    return found


@pytest.mark.parametrize(
    "expression",
    [
        "'busy' not like 'b%'",
        "'busy' not like 'c%'",
        "iif('busy' not like 'b%', 1, 2)",
        "'busy' not glob 'b*'",
        "'busy' glob '[^a-z]*'",
        "'Busy' glob '[^a-z]*'",
        "'busy' glob '[!a-z]*'",
        "'!usy' glob '[!a-z]*'",
        "'!' glob '[!]'",
        "'busy' glob '[' || '^a]*'",
        "(select v from (select 1 as v union all select null) order by v nulls last limit 1)",
        "(select v from (select 1 as v union all select null) order by v limit 1)",
        "(select v from (select 1 as v union all select null) order by v desc nulls first limit 1)",
    ],
)
def test_value_is_that_of_sqlite(shared: TraceProcessor, expression: str) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as sqlite:
        ((expected,),) = sqlite.execute(f"select {expression}").fetchall()
    assert value(shared, expression) == expected


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "select sum(id = '1'), sum(id < '1'), sum('-1' < id), sum(id is '1.0') from slice",
            "1121",
        ),
        ("select case depth when '0' then 5 else 6 end from slice where id = 0", "5"),
        ("select count(*) from slice where id in ('0', '1')", "2"),
        ("select count(*) from slice s where s.id not in ('1', '2') or s.depth is 'x'", "1"),
        ("select count(*) from slice where id = '1'", "0"),
        ("select count(*) from slice where id = '0' or id = '1'", "2"),
        ("select count(*) filter (where id = '1') from slice", "1"),
        ("select count(*) filter (where id = '1' or name = 'x') from slice", "1"),
        ("select sum(cast(id as text) = 1), sum(cast(id as int) = '1') from slice", "11"),
        ("create perfetto table t as select 1 as a; select a = '1', a = '1x' from t", "10"),
        ("create table u as select 1 as a; select a = '1' from u", "0"),
        ("create perfetto view v as select 1 as a; select a = '1' from v", "0"),
        ("select a = '1' from (select 1 as a)", "0"),
        ("with slice as (select '1' as id) select id = '1' from slice", "1"),
        ("select max(id + null), id from slice", "N1"),
        ("select max(thread_dur), id from slice where thread_dur is null", "N0"),
    ],
)
def test_columns_have_affinities_and_aggregates_of_nulls_have_a_row(
    processor: TraceProcessor, sql: str, rows: str
) -> None:
    (found,) = processor.query(sql).fetchall()
    assert "".join("N" if each is None else str(each) for each in found) == rows


def test_table_that_is_not_created_again_keeps_its_types(processor: TraceProcessor) -> None:
    with pytest.raises(QueryError, match="exists"):
        processor.query("create table thread as select '1' as utid")
    found = processor.query("select sum(utid = '1') from thread").fetchall()
    assert found == processor.query("select sum(utid = 1) from thread").fetchall()
    assert found[0][0]


@pytest.mark.parametrize(
    "condition",
    ["id = '3' or name = 'x'", "name = 'x' or (id > '3' and depth = 0)", "id = '3' or depth = '0'"],
)
def test_number_in_quotes_in_an_or_is_refused(processor: TraceProcessor, condition: str) -> None:
    with pytest.raises(QueryError, match="'3' is a text: write the number without quotes"):
        processor.query(f"select id from slice where {condition}")


BARE = ["max(a)", "min(a)", "count(*), max(a)", "max(a), max(b)", "max(b), min(a), max(b)"]
AFTER = ["", "order by count(*)", "order by max(b)", "having min(b) > 0 order by min(a)"]


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("aggregates", BARE)
def test_bare_columns_are_of_the_row_that_sqlite_takes(
    shared: TraceProcessor, aggregates: str, after: str
) -> None:
    rows = "(7, 1, 2, 1), (7, 3, 1, 2), (7, 2, 3, 3), (8, 2, 1, 4), (8, null, 5, 5), (8, 1, 4, 6)"
    rows += ", (9, null, 6, 7), (9, null, 7, 8)"
    table = f"with t(g, a, b, i) as (values {rows})"
    sql = f"{table} select g, i, {aggregates} from t group by g {after}"
    with contextlib.closing(sqlite3.connect(":memory:")) as sqlite:
        expected = sqlite.execute(sql).fetchall()
    assert sorted(shared.query(sql).fetchall()) == sorted(expected)


class TestArguments:
    @pytest.mark.parametrize(
        ("key", "expected"), [("size", 3), ("ratio", 0.5), ("label", "x"), ("on", 1), ("no", None)]
    )
    def test_argument_has_its_type(
        self, shared: TraceProcessor, key: str, expected: object
    ) -> None:
        found = value(
            shared, f"extract_arg(arg_set_id, 'debug.{key}') from slice where name = 'outer'"
        )
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            ("sum({})", None),
            ("sum({} + 1)", None),
            ("max(coalesce({}, dur)) = max(dur)", 1),
            ("group_concat({} || 'x')", None),
            ("count(case when {} > 3 or {} = 'x' or {} like 'x' then 1 end)", 0),
            ("max(coalesce({}, 'none'))", "none"),
            ("typeof({})", "null"),
        ],
    )
    def test_argument_that_the_trace_lacks_is_null_of_any_type(
        self, shared: TraceProcessor, expression: str, expected: object
    ) -> None:
        sql = expression.replace("{}", "extract_arg(arg_set_id, 'debug.no')")
        assert value(shared, f"{sql} from slice limit 1") == expected

    def test_table_of_an_argument_that_the_trace_lacks(self, processor: TraceProcessor) -> None:
        lacking = "extract_arg(arg_set_id, 'debug.no') as x"
        processor.query(f"create perfetto table t as select {lacking} from slice")
        assert value(processor, "sum(x) from t") is None

    def test_column_of_an_argument_that_the_trace_lacks_must_exist(
        self, shared: TraceProcessor
    ) -> None:
        with pytest.raises(QueryError, match="there is no column nosuch"):
            shared.query("select extract_arg(nosuch, 'debug.no') from slice")

    @pytest.mark.parametrize(
        ("returned", "call"),
        [
            ("int as select extract_arg($s, $k)", "f(arg_set_id, 'debug.size') from slice"),
            (
                "table(v int) as select extract_arg($s, $k) as v",
                "v from f((select min(arg_set_id) from slice where name = 'outer'), 'debug.size')",
            ),
        ],
    )
    def test_argument_whose_key_is_a_functions_parameter_has_its_type(
        self, processor: TraceProcessor, returned: str, call: str
    ) -> None:
        processor.query(f"create perfetto function f(s int, k string) returns {returned}")
        assert (3,) in processor.query(f"select {call}").fetchall()

    def test_argument_can_be_compared(self, processor: TraceProcessor) -> None:
        sql = "select name from slice where extract_arg(arg_set_id, 'debug.size') = 3"
        assert processor.query(sql).fetchall() == [("outer",)]


class TestRelatives:
    @pytest.mark.parametrize("function", ["ancestor_slice", "descendant_slice"])
    def test_of_one_slice_are_those_of_a_join(self, nested: TraceProcessor, function: str) -> None:
        joined = nested.query(f"select s.id, f.* from slice s join {function}(s.id) f").fetchall()
        found = [
            (number, *row)
            for (number,) in nested.query("select id from slice").fetchall()
            for row in nested.query(f"select * from {function}({number})").fetchall()
        ]
        assert len(found) == 12
        assert sorted(found, key=repr) == sorted(joined, key=repr)

    def test_table_function_without_alias_names_its_columns(self, nested: TraceProcessor) -> None:
        sql = "select ancestor_slice.name from ancestor_slice(3) where ancestor_slice.depth = 1"
        assert nested.query(sql).fetchall() == [("1",)]


class TestStatements:
    def test_index_can_be_created_and_dropped(self, processor: TraceProcessor) -> None:
        processor.query("create perfetto table t as select * from slice")
        processor.query("create perfetto index by_name on t(name, ts)")
        processor.query("drop perfetto index by_name on t")
        with pytest.raises(QueryError, match="there is no index by_name on t"):
            processor.query("drop perfetto index by_name on t")

    def test_function_is_called_with_columns_of_the_same_name(
        self, processor: TraceProcessor
    ) -> None:
        rows = processor.query(
            "create perfetto function children(id LONG) returns LONG as "
            "select count(*) from slice where parent_id = $id; "
            "select name, children(id) from slice order by id"
        ).fetchall()
        assert rows == [("outer", 1), ("inside", 0)]

    @pytest.mark.parametrize("name", ["first", "list", "day", "agg", "count_if", "left"])
    def test_function_may_have_the_name_of_an_own_one_of_the_engine(
        self, processor: TraceProcessor, name: str
    ) -> None:
        rows = processor.query(
            f"create perfetto function {name}(x LONG) returns LONG as select $x + 1; "
            f"select {name}(id) from slice order by id"
        ).fetchall()
        assert rows == [(1,), (2,)]

    def test_macro_is_expanded_in_a_macro(self, processor: TraceProcessor) -> None:
        rows = processor.query(
            "create perfetto macro one() returns Expr as (1);"
            "create perfetto macro more(x Expr) returns Expr as ($x + one!());"
            "select more!(more!(5))"
        ).fetchall()
        assert rows == [(7,)]

    def test_module_is_included_once(self, processor: TraceProcessor) -> None:
        processor.query("include perfetto module slices.with_context")
        processor.query("include perfetto module slices.*")
        assert value(processor, "count(*) from thread_slice") == 2

    def test_last_statement_gives_the_result(self, processor: TraceProcessor) -> None:
        assert processor.query("select 1; select 2;").fetchall() == [(2,)]

    @pytest.mark.parametrize(
        ("created", "query"),
        [
            ("create or replace perfetto function f() returns long as select {}", "select f()"),
            ("create or replace perfetto macro m() returns expr as {}", "select m!()"),
            ("create or replace perfetto view v as select {} as x", "select x from v"),
            (
                "create or replace perfetto function t() returns table(x long) as select {} as x",
                "select x from t()",
            ),
            (
                "create table if not exists c (x int); delete from c; insert into c values ({})",
                "select x from c",
            ),
        ],
    )
    def test_same_query_has_another_result_when_a_name_means_something_else(
        self, processor: TraceProcessor, created: str, query: str
    ) -> None:
        for number in (1, 2):
            processor.query(created.format(number))
            for _ in range(2):
                assert processor.query(query).fetchall() == [(number,)]

    def test_query_is_refused_when_its_table_is_dropped(self, processor: TraceProcessor) -> None:
        processor.query("create perfetto table gone as select 1 as x")
        assert processor.query("select x from gone").fetchall() == [(1,)]
        processor.query("drop table gone")
        with pytest.raises(QueryError, match="no table gone"):
            processor.query("select x from gone").fetchall()

    def test_functions_replace_statements_of_old_queries(self, processor: TraceProcessor) -> None:
        rows = processor.query(
            "select create_function('f(x INT)', 'INT', 'select $x + 1');"
            "select create_view_function('g(x INT)', 'y INT', 'select f($x) as y');"
            "select import('slices.self_dur'); select y from g(5)"
        ).fetchall()
        assert rows == [(6,)]

    def test_table_may_be_without_rowid(self, processor: TraceProcessor) -> None:
        processor.query("create table numbers(a INT, primary key (a)) without rowid")
        processor.query("insert into numbers values (3)")
        assert processor.query(
            "select a from numbers cross join numbers n using (a)"
        ).fetchall() == [(3,)]

    def test_argument_of_a_table_function_may_be_a_query(self, processor: TraceProcessor) -> None:
        rows = processor.query(
            "include perfetto module slices.hierarchy; select name "
            "from _slice_ancestor_and_self((select id from slice where name = 'inside'))"
        ).fetchall()
        assert rows == [("inside",), ("outer",)]

    def test_values_of_counter_intervals_are_floating_point(
        self, processor: TraceProcessor
    ) -> None:
        rows = processor.query(
            "include perfetto module counters.intervals; "
            "create perfetto table numbers as "
            "with data(id, ts, track_id, value) as (values (0, 5, 1, 10), (1, 7, 1, 30)) "
            "select * from data; "
            "select value, next_value, delta_value "
            "from counter_leading_intervals!(numbers) order by id"
        ).fetchall()
        assert rows == [(10, 30, None), (30, None, 20)]
        assert {type(x) for row in rows for x in row} == {float, type(None)}

    def test_intervals_of_a_value_that_repeats_are_two(self, processor: TraceProcessor) -> None:
        rows = processor.query(
            "include perfetto module counters.intervals; "
            "create perfetto table repeated as "
            "with data(id, ts, track_id, value) as (values (0, 5, 1, 1), (1, 7, 1, 2), "
            "(2, 9, 1, 2), (3, 11, 1, 2), (4, 13, 1, 2), (5, 20, 1, 3)) select * from data; "
            "select id, dur, value, next_value, delta_value "
            "from counter_leading_intervals!(repeated) where id < 5 order by id"
        ).fetchall()
        assert rows == [(0, 2, 1, 2, None), (1, 2, 2, 2, 1), (2, 11, 2, 3, 0)]

    def test_span_join_may_exist(self, processor: TraceProcessor) -> None:
        spans = "create perfetto table spans as select 5 as ts, 10 as dur, 1 as a"
        other = "create perfetto table others as select 8 as ts, 10 as dur, 2 as b"
        join = "create virtual table if not exists joined using span_join(spans, others)"
        rows = processor.query(f"{spans}; {other}; {join}; {join}; select * from joined").fetchall()
        assert rows == [(8, 7, 1, 2)]
        with pytest.raises(QueryError, match="already exists"):
            processor.query(join.replace("if not exists ", ""))

    def test_columns_of_several_tables_are_arguments_of_an_expression(
        self, processor: TraceProcessor
    ) -> None:
        rows = processor.query(
            "create perfetto function added(x LONG, y LONG) returns LONG as select $x + $y; "
            "select added(a, b) from (select 1 as a), (select 2 as b)"
        ).fetchall()
        assert rows == [(3,)]

    def test_comment_alone_is_refused(self, processor: TraceProcessor) -> None:
        with pytest.raises(QueryError, match="no statement"):
            processor.query("-- nothing")

    def test_result_is_named_by_the_text_of_its_expression(self, processor: TraceProcessor) -> None:
        result = processor.query("select count(*), max( dur )\n  from slice")
        assert result.columns == ("count(*)", "max( dur )")

    def test_declared_columns_are_checked(self, processor: TraceProcessor) -> None:
        with pytest.raises(QueryError, match="declared with the columns b, but has a"):
            processor.query("create perfetto table t(b LONG) as select 1 as a")


VALUES = [
    ("ifnull(1, 'none')", 1),
    ("ifnull((select parent_id from slice where id = 0), 'none')", "none"),
    ("(select iif(id = 0, 'first', id) from slice where id = 0)", "first"),
    ("(select case when id = 1 then 'second' else id end from slice where id = 1)", "second"),
    ("to_timecode(3599123456789)", "00:59:59 123 456 789"),
    ("ceil(5)", 5),
    ("floor(5.5)", 5.0),
    ("exp('x')", None),
    ("ln(0)", None),
    ("sqrt(4)", 2.0),
    ("sqrt(-1)", None),
    ("regexp_extract('ac', 'a(b)?c')", "ac"),
    ("__intrinsic_stringify!(a + b)", "a + b"),
    ("(select cast(x as int) from (select null + 0.5 as x))", None),
]


@pytest.mark.parametrize(("expression", "expected"), VALUES)
def test_function_gives_the_value_of_perfetto(
    shared: TraceProcessor, expression: str, expected: object
) -> None:
    assert value(shared, expression) == expected


ERRORS = [
    ("create temp table t(a, b)", "a table whose column a has no type is not available with Duck"),
    ("select percentile(dur) from slice", "percentile has 2 arguments, not 1"),
    ("select nme\nfrom slice", "line 1, column 8: there is no column nme. Did you mean name"),
    ("select name\nfrom slise", "line 2, column 6: there is no table slise. Did you mean slice"),
    ("select ancestr(1)", "there is no function ancestr"),
    ("select * from ancester_slice(1)", "Did you mean ancestor_slice"),
    ("include perfetto module slices.contxt", "no module slices.contxt. Did you mean slices.with"),
    ("select a!(1)", "line 1, column 8: there is no macro a!."),
    ("select cast_int!(1, 2)", "cast_int! has 1 arguments, not 2"),
    ("select 'abc", "this text has no end"),
    ("select (1", "syntax error"),
    (
        "select 1;\nselct 2",
        "line 2, column 1: no statement begins with selct. Did you mean select?",
    ),
    ("select name,\n sum(name) from slice", "line 2, column 2: sum has no form for arguments of"),
    ("select name from slice; select name from x.y", "line 1, column 25: there is no table x.y"),
    ("select x.id from slice", "line 1, column 8: there is no table x."),
    ("select a.id from slice a join slice b using (i)", "line 1, column 46: there is no column i"),
    ("select max(sum(dur)) from slice", "line 1, column 12: aggregate function calls cannot be"),
    ("select 1;\n select id from slice union select 1, 2", "line 2, column 2: Set operations"),
    ("copy slice to 'x.csv'", "line 1, column 1: copy is not available: a query has no files"),
    ("select * from read_csv('x.csv')", "line 1, column 15: a query can't read or write files"),
    ("select * from read_text('/etc/hostname')", "a query can't read or write files"),
    ("select 1 +", "syntax error"),
    ("create perfetto thing x as select 1", "expected table, view, function, macro or index"),
    ("create perfetto table x select 1", "expected 'as' here"),
    ("create virtual table x using fts5(a)", "only span joins are available"),
    ("create virtual table x using span_join(slice)", "joins two tables, not 1"),
    ("create virtual table x using span_join(slice, counter partitioned cpu)", "no column cpu"),
    ("create virtual table x using span_join(slice, slices)", "both tables have the column"),
    ("select demangle('_Z1av')", "the function demangle is not available"),
    ("select strftime('%Y', 0, 'unixepoch')", "the function strftime is not available"),
    ("select json_extract('{}', '$.a')", "the function json_extract is not available"),
    ("select rowid from slice", "the column rowid"),
    ("select 'a' like 'b' escape 'c'", "ESCAPE is not available"),
    ("select printf('%q', 1)", "printf with %q is not available"),
    ("select printf('%d', 1, 2)", "printf with 2 values where its format has 1"),
    ("select printf(name) from slice", "a format that is no text in quotes"),
    ("select regexp_extract('a', '(a)(b)')", "at most one group"),
    ("select extract_arg(1)", "extract_arg has 2 arguments, not 1"),
    (
        (
            "create perfetto function t(x LONG) returns table(x LONG) as select * from t($x); "
            "select * from t(1)"
        ),
        "calls itself",
    ),
    ("create perfetto macro m() returns Expr as m!(); select m!()", "contains itself"),
    (
        "create perfetto function g(x LONG) returns LONG as select 1; select g()",
        "has 1 argument, not 0",
    ),
    (
        "create perfetto macro n() returns Expr as 1; create perfetto macro n() returns Expr as 2",
        "there is a macro n already",
    ),
]


FIBONACCI = """
create perfetto function fibonacci(n LONG) returns LONG as
    select iif($n < 2, $n, fibonacci($n - 1) + fibonacci($n - 2));
"""
LETTERS = """
create perfetto function letters(n INT) returns STRING as
    select iif($n = 0, '', letters($n - 1) || char(96 + $n, 45));
"""
REACHED = """
create table links as select 1 as a, 2 as b union all select 1, 3 union all select 3, 4;
create perfetto function reached(n INT) returns INT as
    select 1 + ifnull((select sum(reached(b)) from links where a = $n), 0);
"""
REPLACED = "create or replace perfetto function fibonacci(n LONG) returns LONG as select 7;"
RECURSIVE = [
    (FIBONACCI + "select fibonacci(60)", [(1548008755920,)]),
    (LETTERS + "select letters(3)", [("a-b-c-",)]),
    (REACHED + "select reached(1), reached(3), reached(null)", [(4, 2, 1)]),
    (FIBONACCI + REPLACED + "select fibonacci(60)", [(7,)]),
]


needs_numpy = pytest.mark.skipif(
    find_spec("numpy") is None, reason="DuckDB needs numpy for functions written in Python"
)


@needs_numpy
@pytest.mark.parametrize(("sql", "rows"), RECURSIVE)
def test_function_may_call_itself(
    processor: TraceProcessor, sql: str, rows: list[tuple[object, ...]]
) -> None:
    assert processor.query(sql).fetchall() == rows


def test_function_that_calls_itself_needs_numpy(
    processor: TraceProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recursion, "find_spec", lambda _: None)
    said = r"fibonacci calls itself: .*needs numpy \(pip install 'stretto\[recursion\]'"
    with pytest.raises(QueryError, match=said):
        processor.query(FIBONACCI)


def test_recursion_through_others_needs_the_engine_sqlite(trace: bytes) -> None:
    sql = (
        "create perfetto function f(x LONG) returns LONG as select 0; "
        "create perfetto function g(x LONG) returns LONG as select iif($x > 0, 1 + f($x - 1), 0); "
        "create or replace perfetto function f(x LONG) returns LONG as select g($x); select g(5)"
    )
    with pytest.raises(QueryError, match=r"calls itself through others.*use the engine sqlite"):
        TraceProcessor(trace).query(sql)
    assert TraceProcessor(trace, engine="sqlite").query(sql).fetchall() == [(5,)]


@needs_numpy
def test_calls_without_an_end_are_an_error(processor: TraceProcessor) -> None:
    processor.query("create perfetto function f(x LONG) returns LONG as select f($x + 1)")
    with pytest.raises(QueryError, match="column 1: the function f calls itself more than"):
        processor.query("select f(1)").fetchall()


def test_query_has_no_settings_and_no_variables_of_python(shared: TraceProcessor) -> None:
    engine: Any = shared._engine
    with pytest.raises(engine._duckdb.Error, match="locked"):
        engine._connection.execute("set enable_external_access = true")
    local = engine
    with pytest.raises(QueryError, match="there is no table local"):
        shared.query("select * from local")
    assert local is engine


def test_printf_without_a_format_is_null(shared: TraceProcessor) -> None:
    assert value(shared, "printf()") is None


def test_statement_that_creates_or_drops_has_no_result(processor: TraceProcessor) -> None:
    for sql in ("create table t as select 1 as x", "insert into t values (2)", "drop table t"):
        assert processor.query(sql).columns == ()


def test_values_of_several_types_keep_their_types(processor: TraceProcessor) -> None:
    rows = "(select 'a' as t, null as i union all select null, 5)"
    assert processor.query(f"select coalesce(t, i) from {rows}").fetchall() == [("a",), (5,)]


@pytest.mark.parametrize(("sql", "complaint"), ERRORS)
def test_error_says_what_is_wrong_and_where(
    shared: TraceProcessor, sql: str, complaint: str
) -> None:
    with pytest.raises(QueryError) as raised:
        shared.query(sql)
    assert complaint in str(raised.value)


def test_tables_without_rows_are_missing_if_packets_were_not_read(
    trace: bytes, processor: TraceProcessor
) -> None:
    assert value(processor, "count(*) from instruments_sample") == 0
    unknown = b"\x0a\x03\xca\x03\x00"  # A packet with a GraphicsFrameEvent.
    with pytest.raises(QueryError, match="no table instruments_sample"):
        TraceProcessor(trace + unknown).query("select * from instruments_sample")


def test_argument_whose_key_is_a_column_is_text(processor: TraceProcessor) -> None:
    sql = "select extract_arg(arg_set_id, key) from slice join args using (arg_set_id)"
    assert ("3",) in processor.query(sql).fetchall()
