"""The engine sqlite answers without a package. conformance/test_queries.py checks its rows."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import stretto
from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.sql.errors import located
from stretto.analysis.sqlite.version import with_version
from tests.support.recorded_events import record

pytestmark = pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")

category = stretto.Category("test.sqlite")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded:  # noqa: SIM117
        with category.slice("outer", size=3, ratio=0.5, on=True), category.slice("inner"):
            category.instant("leaf")
    return bytes(recorded.trace)


@pytest.fixture
def processor(trace: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceProcessor]:
    for package in ("duckdb", "sqlglot"):
        monkeypatch.setitem(sys.modules, package, None)
    with TraceProcessor(trace, engine="sqlite") as made:
        yield made


def test_query_needs_no_package(processor: TraceProcessor) -> None:
    rows = list(processor.query("select name, depth from slice order by id"))
    assert [(row.name, row.depth) for row in rows] == [("outer", 0), ("inner", 1), ("leaf", 2)]


def test_tables_are_copied_when_a_statement_names_them(processor: TraceProcessor) -> None:
    engine = processor._engine
    before = set(engine._tables)  # type: ignore[union-attr]
    processor.query("select count(*) from slice")
    assert before - set(engine._tables) == {"_slice"}  # type: ignore[union-attr]


def test_function_whose_body_names_a_table_is_called_for_each_row(
    processor: TraceProcessor,
) -> None:
    rows = processor.query(
        "create perfetto function thread_name(wanted LONG) returns STRING as "
        "select coalesce(name, '-') from thread where utid = $wanted; "
        "select s.id, thread_name(t.utid) is not null from slice s "
        "join thread_track t on s.track_id = t.id"
    ).fetchall()
    assert rows == [(0, 1), (1, 1), (2, 1)]


MACRO_IN_FUNCTION = """
create perfetto macro one() returns Expr as 1;
create perfetto function ones() returns TABLE(a LONG) as select one!() as a;
select a from ones()
"""


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select median(name) from slice", "the values of median must be numbers"),
        ("select percentile(name, 50) from slice", "the values of percentile must be numbers"),
        ("select percentile(id, id) from slice", "percentile must be the same for all rows"),
        ("select median(id * 1e999) from slice", "the values of median must not be infinite"),
        ("select percentile(id, null) from slice", "percentile must be a number from 0 to 100"),
        ("select 1, _rowid_ from slice", "line 1, column 11: there is no column _rowid_"),
        ("select oid from thread", "line 1, column 8: there is no column oid"),
        ("create perfetto table t as select 1 as a; select rowid from t", "no column rowid"),
        ("select regexp_extract('a', '(')", "regexp_extract can't take these arguments: missing )"),
    ],
)
def test_error_of_a_function_says_what_is_wrong(
    processor: TraceProcessor, sql: str, problem: str
) -> None:
    with pytest.raises(QueryError) as error:
        processor.query(sql)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 7 / 2, '5' = 5, 'a' like 'A'", [(3, 0, 1)]),
        ("select extract_arg(arg_set_id, 'debug.size') from slice where id = 0", [(3,)]),
        ("select display_value from args where key = 'debug.on'", [("true",)]),
        ("select name from ancestor_slice(2)", [("outer",), ("inner",)]),
        ("select d.name from slice s join descendant_slice(s.id) d where s.id = 1", [("leaf",)]),
        (
            "select s.id, a.id from slice s left join ancestor_slice(s.id) a on a.depth = 0",
            [(0, None), (1, 0), (2, 0)],
        ),
        ("select s.id, a.id from slice s, ancestor_slice(s.id) a where a.depth = 1", [(2, 1)]),
        ("select slice_is_ancestor(0, 2), slice_is_ancestor(2, 0)", [(1, 0)]),
        ("select trace_end() - trace_start() = trace_dur()", [(1,)]),
        ("select percentile(id, 50), median(id) from slice", [(1.0, 1.0)]),
        ("create table t(x int); insert into t values (7); select rowid, x from t", [(1, 7)]),
        ("select value_at_max_ts(ts, name) from slice", [("leaf",)]),
        ("select 'ab12' regexp '[0-9]', regexp_extract('ab12', '[0-9]+')", [(1, "12")]),
        ("create perfetto table t as select 1 as a; select a from t", [(1,)]),
        (MACRO_IN_FUNCTION, [(1,)]),
        ("create or replace perfetto view v as select 2 as a; select a from v", [(2,)]),
        ("create perfetto table t as select 1 as a; create perfetto index i on t(a)", []),
        ("include perfetto module slices.self_dur; select count(*) from slice_self_dur", [(3,)]),
    ],
)
def test_statement_gives_rows(
    processor: TraceProcessor, sql: str, expected: list[tuple[object, ...]]
) -> None:
    assert processor.query(sql).fetchall() == expected


CORRELATED = """
create perfetto function f(x LONG) returns TABLE(id LONG) as select $x as id;
select * from slice s join f(s.id)
"""


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [
        ("select\n  nme from slice", "line 2, column 3: there is no column nme. Did you mean name"),
        ("select * from slise", "line 1, column 15: there is no table slise. Did you mean slice"),
        ("select ancestr(1)", "there is no function ancestr"),
        ("select 1 frm slice x", "line 1, column 10: syntax error at frm. Did you mean from?"),
        ("include perfetto module slices.contxt", "no module slices.contxt. Did you mean"),
        ("create perfetto table x(b LONG) as select 1 as a", "declared with the columns b, but"),
        ("attach 'x.db' as x", "line 1, column 1: attach is not available: a query has no files"),
        (
            "create table a(b); create view c as select b from a; drop table a; select nme",
            "line 1, column 75: there is no column nme.",
        ),
        ("-- nothing", "there is no statement"),
        (
            CORRELATED,
            "can't be columns of other tables",
        ),
    ],
)
def test_error_says_what_is_wrong_and_where(
    processor: TraceProcessor, sql: str, complaint: str
) -> None:
    with pytest.raises(QueryError) as raised:
        processor.query(sql)
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select string_agg(name, ',') from slice", "there is no function string_agg: "),
        ("select iif(1, 2)", "wrong number of arguments to function iif(): "),
        ("select group_concat(name order by ts) from slice", 'near "order": syntax error: '),
    ],
)
@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 44), reason="this SQLite has them")
def test_error_of_an_old_sqlite_names_its_version(
    processor: TraceProcessor, sql: str, problem: str
) -> None:
    with pytest.raises(QueryError) as raised:
        processor.query(sql)
    said = f"{problem}this Python has SQLite {sqlite3.sqlite_version}, the trace processor v52 has "
    assert said + "3.50.3" in str(raised.value)


@pytest.mark.parametrize(
    ("version", "is_named"), [((3, 40, 1), True), ((3, 50, 3), False), ((3, 53, 4), False)]
)
def test_version_is_named_only_if_it_is_older(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], is_named: bool
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
    error = located("there is no function concat. Did you mean count?", "select concat(1)", 7)
    assert ("this Python has" in str(with_version(error))) == is_named
    other = located("there is no function cnt. Did you mean count?", "select cnt(1)", 7)
    assert with_version(other) is other


def test_modules_of_the_user_can_be_included(processor: TraceProcessor) -> None:
    processor.add_modules({"mine.one": "create perfetto table one as select 1 as a"})
    assert processor.query("include perfetto module mine.one; select a from one").fetchall() == [
        (1,)
    ]


def test_result_becomes_a_dataframe(trace: bytes) -> None:
    pytest.importorskip("pandas")
    with TraceProcessor(trace, engine="sqlite") as processor:
        frame = processor.query("select name, dur from slice where id = 0").pandas()
    assert list(frame.columns) == ["name", "dur"]
    assert list(frame["name"]) == ["outer"]


def test_integers_with_null_are_exact_in_a_dataframe(trace: bytes) -> None:
    pytest.importorskip("pandas")
    with TraceProcessor(trace, engine="sqlite") as processor:
        frame = processor.query(
            "select 1795927215931910383 a, 1 a union all select null, 2"
        ).pandas()
    assert list(frame.columns) == ["a", "a_1"]
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "int64"]
    assert frame.iloc[0, 0] == 1795927215931910383


def test_unknown_engine_is_refused(trace: bytes) -> None:
    with pytest.raises(ValueError, match="the engines are duckdb and sqlite, not 'mysql'"):
        TraceProcessor(trace, engine="mysql")


@pytest.mark.parametrize(("first", "second"), [("1", "'a'"), ("'a'", "1.5"), ("1.5", "x'00'")])
def test_column_of_several_types_has_no_form_in_arrow(
    processor: TraceProcessor, tmp_path: Path, first: str, second: str
) -> None:
    pytest.importorskip("pyarrow")
    sql = f"select 7 as a, {first} as b union all select 8, {second}"
    kinds = {"1": "integers", "1.5": "reals", "'a'": "texts", "x'00'": "blobs"}
    for write in ("arrow", "parquet"):
        with pytest.raises(QueryError, match=r"the column b has .*use cast\(") as raised:
            getattr(processor.query(sql), write)(*[tmp_path / "t"] * (write == "parquet"))
        assert all(kinds[value] in str(raised.value) for value in (first, second))
    assert not (tmp_path / "t").exists()
    cast = sql.replace(first, f"cast({first} as text)").replace(second, f"cast({second} as text)")
    assert processor.query(cast).arrow().num_rows == 2
