"""Errors of unknown names say what to write instead, and statements show what there is.

Both engines give the same advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

import stretto
from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.sql.advice import FUNCTIONS
from stretto.analysis.trace_processor import DUCKDB, ENGINES, SQLITE
from tests.support.recorded_events import record

pytestmark = pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")

category = stretto.Category("test.advice")


@pytest.fixture(scope="module")
def trace() -> bytes:
    with record() as recorded, category.slice("handle", size=3):
        category.instant("inside.it")
    return bytes(recorded.trace)


@pytest.fixture(scope="module", params=ENGINES)
def processor(request: pytest.FixtureRequest, trace: bytes) -> Iterator[TraceProcessor]:
    if request.param != SQLITE and not (find_spec("duckdb") and find_spec("sqlglot")):
        pytest.skip("no DuckDB")
    with TraceProcessor(trace, engine=request.param) as made:
        yield made


def complaint_about(processor: TraceProcessor, sql: str) -> str:
    """Return the error of a statement; empty if it has none."""
    try:
        processor.query(sql)
    except QueryError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [
        (
            "select * from thread_slice",
            "no table thread_slice. Write first: include perfetto module slices.with_context;\n",
        ),
        ("select * from sliec", "there is no table sliec. Did you mean slice"),
        (
            "select time_to_ms(dur) from slice",
            "no function time_to_ms. Write first: include perfetto module time.conversion;\n",
        ),
        (
            "select * from graph_next_sibling!(slice)",
            "no macro graph_next_sibling!. Write first: include perfetto module graphs.search;\n",
        ),
        (
            "select 1 from slice where name = handle",
            "column 34: there is no column handle. Text needs single quotes: 'handle'.\n",
        ),
        (
            "select 1 from slice where name = unheard",
            "there is no column unheard. Text needs single quotes: 'unheard'.\n",
        ),
        (
            "select 1 from slice where name like handle",
            "column 37: there is no column handle. Text needs single quotes: 'handle'.\n",
        ),
        (
            "select 1 from slice where name in (other, handle)",
            "there is no column other. Text needs single quotes: 'other'.\n",
        ),
        ("select 1 from slice where inside.it = name", " Text needs single quotes: 'inside.it'.\n"),
        (
            "select extract_arg(arg_set_id, debug.other) from slice",
            " Text needs single quotes: 'debug.other'.\n",
        ),
        ("select * from slice s where s.name = s.nam", "no column nam. Did you mean name?\n"),
        ("select nam || 'x' from slice", "column 8: there is no column nam. Did you mean name?\n"),
        ("select dur > handel from slice", "there is no column handel.\n"),
        ("select percentil(dur, 95) from slice", "no function percentil. Did you mean percentile"),
        (
            "include perfetto module slices.contxt",
            "no module slices.contxt. Did you mean slices.with_context or",
        ),
        (
            "include perfetto module android.startup",
            "there is no module android.startup. `show modules` lists all\n",
        ),
        ("select * from perfetto_table_info('slice')", " Write: describe TABLE\n"),
        ("describe slise", "line 1, column 10: there is no table slise. Did you mean slice"),
        ("select * FORM slice", "column 10: syntax error at FORM. Did you mean from?\n"),
        (
            "select 1;\nselect *\nfrom slice wher dur > 5",
            "line 3, column 12: syntax error at wher. Did you mean where?\n  from slice wher",
        ),
        ("select 1 from slice gropu by name", "column 21: syntax error at gropu. Did you mean"),
        ("select 1 from slice ordr by ts", "column 21: syntax error at ordr. Did you mean"),
        ("select 1 from slice s left jion thread t using (id)", "at jion. Did you mean join?\n"),
        ("select distict name from slice", "no column distict. Did you mean distinct?\n"),
        ("select 1 from slice order ts", "column 27: syntax error: order needs by after it\n"),
        ("select name, from slice", 'column 14: syntax error: "from" is not expected here, after'),
        ("select (1", "column 8: syntax error: this parenthesis is never closed\n"),
        ("select 1 +", "column 10: syntax error: the statement ends too early, after +\n"),
        ("select 5::int", 'column 9: syntax error: ":" is not expected here\n'),
        ("create perfeto table x as select 1", "column 8: syntax error at perfeto. Did you mean"),
        (
            "create perfetto table x as selct 1",
            "column 28: syntax error at selct. Did you mean select?\n",
        ),
        ("inculde perfetto module time.conversion", "with inculde. Did you mean include?\n"),
        ("pivot slice on name", "begins with pivot. A query begins with select or with"),
        ("select * from duckdb_settings()", "column 15: there is no "),
        ("select * from duckdb_settings", "column 15: there is no table duckdb_settings.\n"),
        ("select * from information_schema.tables", "there is no table tables.\n"),
        ("select version()", "column 8: there is no function version."),
        (
            "with a as (select utid from thread) select utid from slice",
            "column 44: there is no column utid. It is a column of thread_track. Add: join thread_",
        ),
        (
            "select n, tn from (select name as n, id as tn from slice) x join thread y on y.tn = 1",
            "column 80: there is no column tn.",
        ),
        (
            "select 1;\nselect name from thread where name in (select s.name from sched s)",
            "line 2, column 49: there is no column name.",
        ),
        (
            "select thread.name from slice",
            "column 8: the table thread is not in from. Add: join thread_track k on track",
        ),
        (
            "select process.name from thread",
            "column 8: the table process is not in from. Add: join process using (upid)\n",
        ),
        ("select s.name from slice", "column 8: there is no table s.\n"),
        ("select t.nam from thread t", "column 10: there is no column nam. Did you mean name"),
        (".mode csv", "no such command; these show what there is: show tables, show modules,"),
        ("show engines", "no such command; these show what there is: show tables, show modules,"),
    ],
)
def test_error_says_what_to_write(processor: TraceProcessor, sql: str, complaint: str) -> None:
    assert complaint in complaint_about(processor, sql)


@pytest.mark.parametrize("sql", ["select thread.name from slice", "select process.pid from slice"])
def test_join_of_an_error_works(processor: TraceProcessor, sql: str) -> None:
    join = complaint_about(processor, sql).partition("Add: ")[2].partition("\n")[0]
    assert join
    assert complaint_about(processor, f"{sql} {join}") == ""


def test_error_in_the_text_of_a_macro_shows_the_statement(processor: TraceProcessor) -> None:
    complaint = complaint_about(
        processor,
        "create or replace perfetto macro ends(x Expr) returns Expr as $x +;\n"
        "select ends!(id) from slice",
    )
    assert complaint.startswith('line 2, column 1: syntax error: "from" is not expected here\n')


def test_suggested_functions_exist(processor: TraceProcessor) -> None:
    for name in FUNCTIONS:
        assert "there is no function" not in complaint_about(
            processor, f"select {name}(1, 2, 3, 4, 5, 6, 7, 8, 9) from slice"
        ), name


@pytest.mark.parametrize("sql", ["show tables", "SHOW TABLES;", ".tables", "pragma table_list"])
def test_tables_are_listed(processor: TraceProcessor, sql: str) -> None:
    result = processor.query(sql)
    names = [name for (name,) in result.fetchall()]
    assert result.columns == ("name",)
    assert {"slice", "args", "thread_track", "ftrace_event"} <= set(names)
    assert names == sorted(names)
    assert not any(name.startswith("_") for name in names)


@pytest.mark.parametrize(
    "sql",
    [
        "describe thread",
        "desc thread",
        ".schema thread",
        "show columns from thread",
        "describe 'thread'",
    ],
)
def test_columns_of_a_table_are_listed(processor: TraceProcessor, sql: str) -> None:
    result = processor.query(sql)
    assert result.columns == ("name", "type")
    rows = result.fetchall()
    assert ("utid", "INTEGER") in rows
    assert ("name", "TEXT") in rows


def test_columns_of_all_tables_are_listed(processor: TraceProcessor) -> None:
    rows = processor.query(".schema").fetchall()
    assert ("slice", "dur", "INTEGER") in rows
    assert ("thread", "name", "TEXT") in rows


def test_table_info_has_the_columns_of_sqlite(processor: TraceProcessor) -> None:
    result = processor.query("pragma table_info(slice)")
    assert result.columns == ("cid", "name", "type", "notnull", "dflt_value", "pk")
    assert result.fetchall()[1] == (1, "ts", "INTEGER", 0, None, 0)


def test_modules_are_listed(processor: TraceProcessor) -> None:
    names = [name for (name,) in processor.query("show modules").fetchall()]
    assert {"slices.with_context", "time.conversion"} <= set(names)


@pytest.mark.parametrize(
    "sql",
    [
        "alter table slice rename to other",
        "explain select 1",
        "create trigger t after insert on slice begin select 1",
        "select 1 from slice where name like 'a' escape 'b'",
    ],
)
def test_duckdb_refuses_in_plain_words_what_only_sqlite_has(
    trace: bytes, sql: str, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    with (
        TraceProcessor(trace, engine=DUCKDB) as processor,
        pytest.raises(QueryError, match=r"is not available with DuckDB: use the engine sqlite"),
    ):
        processor.query(sql)
    assert not caplog.records


MACRO = "create or replace perfetto macro twice(x Expr) returns Expr as $x * 2;\n"


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        (
            "select 1;\n\nselect *\nfrom twicee!(slice)",
            "line 4, column 6: there is no macro twicee!",
        ),
        (MACRO + "select 1;\nselect dur,\n  twice!(1, 2)", "line 4, column 3: twice! has 1 arg"),
        ("select 1;\n\nselect twice!(1;", "line 3, column 14: this parenthesis is never closed"),
        (MACRO + "select twice!(1); select twicee!(1)", "line 2, column 26: there is no macro"),
        (
            MACRO.replace("$x * 2", "twice!($x)") + "select twice!(1)",
            "line 2, column 8: the macro twice! contains itself",
        ),
        ("select\tnmae from slice", "line 1, column 8: there is no column nmae"),
    ],
)
def test_errors_of_macros_show_the_place_in_the_whole_text(
    processor: TraceProcessor, sql: str, place: str
) -> None:
    assert complaint_about(processor, sql).startswith(place)


def test_error_in_the_body_of_a_function_says_what_is_wrong(processor: TraceProcessor) -> None:
    inner = (
        "create or replace perfetto function f_in(x long) returns long as select nmae from slice"
    )
    outer = "create or replace perfetto function f_out(x long) returns long as select f_in($x)"
    complaint = complaint_about(processor, f"{inner}; {outer}; select f_out(1)")
    assert "there is no column nmae. Did you mean name?" in complaint


def test_mark_of_a_place_is_below_it_after_a_tab(processor: TraceProcessor) -> None:
    assert complaint_about(processor, "select\tnmae from slice").endswith("\n        \t^")


@pytest.mark.parametrize(
    "sql",
    [
        "select name slice",
        "select name from slice join track on track_id = track.id",
        "select name from slice where count(*) > 1",
        "select name, count(*) from slice group by 5",
        "select ancestor_slice(1)",
    ],
)
def test_what_sqlite_refuses_too_does_not_advise_it(processor: TraceProcessor, sql: str) -> None:
    complaint = complaint_about(processor, sql)
    assert complaint.startswith("line 1, column ")
    assert "--engine sqlite" not in complaint


def test_table_of_packets_that_are_not_imported_has_a_reason(trace: bytes) -> None:
    unknown = b"\x0a\x03\xca\x03\x00"  # A packet with a GraphicsFrameEvent.
    with (
        TraceProcessor(trace + unknown, engine=SQLITE) as processor,
        pytest.raises(QueryError, match=r"no table frame_slice\. The trace has packets that"),
    ):
        processor.query("select * from frame_slice")


def test_counter_tracks_of_owners_have_the_columns_of_perfetto(processor: TraceProcessor) -> None:
    for table, owner in (("thread", "utid"), ("process", "upid"), ("cpu", "cpu")):
        columns = processor.query(f"select * from {table}_counter_track").columns
        common = ("id", "name", "type", "parent_id", "source_arg_set_id", "machine_id")
        assert columns == (*common, "unit", "description", owner)


def test_statistics_have_a_description(processor: TraceProcessor) -> None:
    assert processor.query("select distinct description from stats").fetchall() == [("",)]
