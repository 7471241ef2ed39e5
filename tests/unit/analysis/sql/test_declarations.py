"""Declared types, and the columns of indexes, are checked as in the trace processor v52."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from stretto.analysis import QueryError, TraceProcessor
from stretto.analysis.sql.declarations import TYPES
from stretto.analysis.trace_processor import ENGINES, SQLITE


@pytest.fixture(scope="module", params=ENGINES)
def processor(request: pytest.FixtureRequest) -> Iterator[TraceProcessor]:
    if request.param != SQLITE and not (find_spec("duckdb") and find_spec("sqlglot")):
        pytest.skip("no DuckDB")
    with TraceProcessor(b"", engine=request.param) as made:
        made.query("create perfetto table indexed as select 1 as name, 2 as value")
        made.query("create perfetto index by_value on indexed(value)")
        yield made


def error_of(processor: TraceProcessor, sql: str) -> tuple[str, str]:
    """Return the error of a statement, and the words in the statement to which it points."""
    with pytest.raises(QueryError) as raised:
        processor.query(sql)
    problem, shown, mark = str(raised.value).splitlines()
    return problem.partition(": ")[2], shown[mark.index("^") :]


TYPE = "create perfetto function f(x {}) returns INT as select 1"
MACRO = "create perfetto macro m(x {}) returns Expr as 1"
INDEX = "create perfetto index i on {}"


@pytest.mark.parametrize(
    ("sql", "problem", "place"),
    [
        (TYPE.format("STRNG"), "no type STRNG. Did you mean string?", "STRNG)"),
        (TYPE.format("ANY"), "no type ANY. The types are argsetid, bool", "ANY)"),
        (TYPE.format(""), "expected a type after x", "x )"),
        (TYPE.format("INT,"), "expected a name here", ") returns"),
        (TYPE.format("INT NOT"), "NOT is not expected here", "NOT)"),
        (TYPE.format("JOINID(slice)"), "( is not expected here", "(slice)"),
        ("create perfetto function f(x INT) retuns INT as select 1", "mean returns?", "retuns"),
        (
            "create perfetto function f() returns tabel(a INT) as select 1 as a",
            "no type tabel. Did you mean table?",
            "tabel(",
        ),
        (
            "create perfetto function f() returns table(a INTT) as select 1 as a",
            "no type INTT. Did you mean int",
            "INTT)",
        ),
        ("create perfetto function f() returns table() as select 1", "expected a column", ") as"),
        ("create perfetto table u(a INT, b LNG) as select 1", "Did you mean long?", "LNG)"),
        ("create perfetto view u(a TIMESTAM) as select 1", "mean timestamp?", "TIMESTAM)"),
        (MACRO.format("Exprr"), "no type Exprr. Did you mean expr?", "Exprr)"),
        (MACRO.format("INT"), "no type INT. The types are columnname,", "INT)"),
        (MACRO.format("ColumnName(a.b)"), "( is not expected here", "(a.b)"),
        ("create perfetto macro m() returns Exprs as 1", "Did you mean expr?", "Exprs as"),
        (INDEX.format("indexed(valu)"), "no column valu. Did you mean value?", "valu)"),
        (INDEX.format("indexed(name, nme)"), "no column nme. Did you mean name?", "nme)"),
        (INDEX.format("indexed()"), "expected a name here", ")"),
        (INDEX.format("indexed(name desc)"), "expected , or ) here", "desc)"),
        (INDEX.format("indexed(name) where 1"), "where is not expected here", "where 1"),
        (INDEX.format("indexd(name)"), "no table indexd. Did you mean indexed?", "indexd("),
        (INDEX.format("slice(name)"), "views may not be indexed", "i on slice"),
        ("create perfetto index by_value on indexed(name)", "already", "by_value"),
        ("create perfetto tabel t as select 1 as a", "Did you mean table?", "tabel t"),
        ("include perfetto modul slices.with_context", "Did you mean module?", "modul "),
        ("drop perfetto indx by_value on indexed", "Did you mean index?", "indx by_value"),
        ("select nul", "no column nul. Did you mean null?", "nul"),
        ("select id from slice where name is nul", "Did you mean null?", "nul"),
    ],
)
def test_mistake_is_shown_in_its_place(
    processor: TraceProcessor, sql: str, problem: str, place: str
) -> None:
    said, shown = error_of(processor, sql)
    assert problem in said
    assert shown.startswith(place)


@pytest.mark.parametrize("kind", [*TYPES, "JOINID(slice.id)", "ID(slice.id)"])
def test_types_of_the_trace_processor_are_known(processor: TraceProcessor, kind: str) -> None:
    processor.query(f"create or replace perfetto function f(x {kind}) returns INT as select 1")
    processor.query(f"create or replace perfetto view v(a {kind}) as select 1 as a")
    assert processor.query("select a from v").fetchall() == [(1,)]


def test_type_that_a_function_returns_is_free_as_in_the_trace_processor(
    processor: TraceProcessor,
) -> None:
    processor.query("create or replace perfetto function g() returns ANY as select 3")
    assert processor.query("select g()").fetchall() == [(3,)]


def test_index_is_replaced_on_request(processor: TraceProcessor) -> None:
    processor.query("create or replace perfetto index by_value on indexed(name, value)")
    assert processor.query("select value from indexed").fetchall() == [(2,)]


@pytest.mark.parametrize("sql", ["select 1 /* open", "select 1; /* open; select 2"])
def test_comment_ends_with_the_text(processor: TraceProcessor, sql: str) -> None:
    assert processor.query(sql).fetchall() == [(1,)]
