from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

import stretto
from stretto.analysis.questions import DURATIONS, INSTANTS, QUESTIONS
from stretto.base.errors import CommandError
from stretto.cli import query
from stretto.cli.main import main
from stretto.cli.query import as_csv, as_json
from stretto.cli.question_table import answer_table
from stretto.cli.text_table import as_table
from tests.support.recorded_events import record
from tests.support.sources import ROOT
from tests.unit.analysis.test_raw_tables import TRACE, Once

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

category = stretto.Category("test.query")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    with record() as recorded, category.slice("work"):
        pass
    path = tmp_path / "t.pftrace"
    path.write_bytes(recorded.trace)
    return str(path)


def test_rows_are_printed_as_a_table(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", trace, "select name, depth, parent_id from slice"]) == 0
    assert capsys.readouterr().out == (
        "name  depth  parent_id\n----  -----  ---------\nwork      0     [NULL]\n"
    )


def test_sql_is_read_from_standard_input(
    trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = io.BytesIO("\ufeffselect name from slice -- a byte order mark is skipped".encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given))
    assert main(["query", "--format", "json", trace, "-"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "work"}]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_sql_that_is_not_utf_8_is_an_error(
    trace: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = "query: line 2, column 2: the SQL is not valid UTF-8 here"
    with pytest.raises(CommandError, match=f"^{expected}$"):
        query.run([trace, "--engine", engine, "select\n'\udcff'"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"select\n'\xff'")))
    with pytest.raises(CommandError, match=f"^{expected}$"):
        query.run([trace, "--engine", engine, "-"])


def test_raw_events_of_a_trace_on_standard_input_are_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Once(TRACE))))
    assert main(["query", "--format", "json", "-", "select ts, name from ftrace_event"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == [{"ts": 10, "name": "cpu_idle"}, {"ts": 20, "name": "cpu_idle"}]


def test_options_may_be_between_trace_and_sql(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", trace, "--format", "csv", "select name from slice"]) == 0
    assert capsys.readouterr().out.split() == ["name", "work"]


def test_csv_has_a_header_and_quotes() -> None:
    assert as_csv(["a", "b"], [(1, 'x,"y"'), (None, "")]) == 'a,b\n1,"x,""y"""\n,\n'
    assert as_csv(["a"], [(b"\xab\0",)]) == "a\nab00\n"


def test_table_shows_long_and_unprintable_text_on_one_line() -> None:
    assert as_table(["text"], [("a\nb",), ("x" * 70,)]).splitlines()[2:] == [
        r"a\x0ab",
        "x" * 59 + "…",
    ]


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [("select nme from slice", "nme"), ("select * from slices2", "slices2")],
)
def test_wrong_sql_is_reported(
    trace: str, sql: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", trace, sql]) == 1
    assert complaint in capsys.readouterr().err


def test_missing_trace_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(tmp_path / "none"), "select 1"]) == 2
    assert "No such file" in capsys.readouterr().err


class TestQuestions:
    def test_answer_is_about_the_named_slice(
        self, trace: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ["--ask", "p99", "--slice", "w*k", "--format", "json"]
        assert main(["query", trace, *arguments]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["name"], row["calls"]) == ("work", 1)

    def test_name_that_no_slice_has_is_a_warning(
        self, trace: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["query", trace, "--ask", "p99", "--slice", "work*"]) == 0
        assert capsys.readouterr().err == ""
        assert main(["query", trace, "--ask", "p99", "--slice", "werk"]) == 0
        assert "no slice has the name 'werk'. Did you mean work?" in capsys.readouterr().err

    def test_table_shows_times_with_units(
        self, trace: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["query", trace, "--ask", "longest"]) == 0
        row = capsys.readouterr().out.splitlines()[2]
        assert re.match(r"0\.\d{6} s +[\d.]+ (ns|us|ms) +work ", row)

    def test_real_numbers_of_an_answer_have_four_digits(self) -> None:
        rows = [(1234567.8, 0.0123456, None), (99.99999, 3.0, 2)]
        assert answer_table(["a", "mean", "b"], rows).splitlines()[2:] == [
            "1234568  0.01235  [NULL]",
            "    100        3       2",
        ]

    def test_times_of_csv_and_json_are_nanoseconds(
        self, trace: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["query", trace, "--ask", "longest", "--format", "json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert main(["query", trace, "select dur from slice", "--format", "csv"]) == 0
        assert capsys.readouterr().out == f"dur\n{row['dur']}\n"

    def test_columns_with_times_are_in_the_questions(self) -> None:
        sql = " ".join(question.sql for question in QUESTIONS.values())
        assert [name for name in DURATIONS | INSTANTS if f"as {name}" not in sql] == []

    def test_list_shows_each_question(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["query", "--list"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[1] for line in lines] == list(QUESTIONS)

    def test_documentation_lists_the_questions(self) -> None:
        text = (ROOT / "docs/analysis.md").read_text()
        assert [name for name in QUESTIONS if f"| `{name}` |" not in text] == []

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["t"],
            ["t", "select 1", "--ask", "longest"],
            ["t", "--ask", "p99"],
            ["t", "--ask", "longest", "--slice", "x"],
            ["t", "--ask", "nothing"],
        ],
    )
    def test_incomplete_question_is_refused(self, arguments: list[str]) -> None:
        assert main(["query", *arguments]) == 2


def test_rows_are_written_as_parquet(
    trace: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    import duckdb

    sql = "select name, sum(depth) as d from slice group by name"
    assert main(["query", trace, "--format", "parquet", sql]) == 0
    file = tmp_path / "rows.parquet"
    file.write_bytes(capfdbinary.readouterr().out)
    assert duckdb.sql(f"select * from '{file}'").fetchall() == [("work", 0)]


def test_served_trace_answers_clients_until_interrupted(trace: str) -> None:
    import signal
    import subprocess
    import sys

    from stretto.analysis.perfetto.trace_processor import TraceProcessor as Client

    command = [sys.executable, "-m", "stretto", "query", "--serve", "--port", "0", trace]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdout is not None
        address = server.stdout.readline().decode().strip()
        with Client(addr=address) as client:
            assert [row.name for row in client.query("select name from slice")] == ["work"]
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


def test_serve_takes_no_sql(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "--serve", trace, "select 1"]) == 2
    assert "--serve takes only a trace" in capsys.readouterr().err


def test_questions_need_no_package(
    trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["query", trace, "--ask", "longest"]) == 0
    assert "work" in capsys.readouterr().out
    with pytest.raises(CommandError, match="duckdb"):
        query.run([trace, "select 1"])


def test_engine_sqlite_answers_questions(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", trace, "--engine", "sqlite", "--ask", "longest"]) == 0
    assert "work" in capsys.readouterr().out


def test_json_keeps_columns_of_equal_names_blobs_and_infinity() -> None:
    rows = [(1, b"\x00\xff", float("-inf"), "x")]
    assert json.loads(as_json(["a", "a", "a_1", "b"], rows)) == [
        {"a": 1, "a_1": "00ff", "a_1_1": "-inf", "b": "x"}
    ]


def test_trace_that_is_cut_off_or_empty_is_a_warning(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut, empty = tmp_path / "cut.pftrace", tmp_path / "empty.pftrace"
    cut.write_bytes(Path(trace).read_bytes()[:-1])
    empty.write_bytes(b"")
    assert main(["query", str(cut), "select 1"]) == 0
    assert "unread: bytes at the end" in capsys.readouterr().err
    assert main(["query", str(empty), "select 1"]) == 0
    assert "unread: the whole trace: it is empty" in capsys.readouterr().err
    assert main(["query", trace, "select 1"]) == 0
    assert capsys.readouterr().err == ""


def test_dropped_events_of_json_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    events = [{"ph": "X", "ts": ts, "dur": 10, "tid": 1, "name": "a"} for ts in (10, 15)]
    path.write_text(json.dumps([*events, {"ph": "F", "ts": 20, "id": 1}]))
    assert main(["query", "--format", "json", str(path), "--ask", "losses"]) == 0
    out, err = capsys.readouterr()
    assert [line.partition(": unread: ")[2] for line in err.splitlines()] == [
        "slices that overlap others of their thread: 1.",
        "events of phases that are not imported (S, T, p, F, unknown): 1.",
    ]
    assert {row["name"] for row in json.loads(out)} == {
        "slice_drop_overlapping_complete_event",
        "stretto_unread_json_events",
    }


@pytest.mark.parametrize("verb", ["query", "summary", "convert", "diff"])
def test_slices_that_nest_too_deeply_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    path = tmp_path / "t.json"
    names = [f"f{depth}" for depth in range(514)]
    begins = [{"ph": "B", "ts": 10 + i, "tid": 1, "name": name} for i, name in enumerate(names)]
    ends = [
        {"ph": "E", "ts": 1000 + i, "tid": 1, "name": name} for i, name in enumerate(names[::-1])
    ]
    path.write_text(json.dumps(begins + ends))
    rest = {
        "query": [str(path), "select 1"],
        "summary": [str(path)],
        "convert": [str(path), str(tmp_path / "t.pftrace")],
        "diff": [str(path), str(path)],
    }
    main([verb, *rest[verb]])
    said = "".join(capsys.readouterr())
    text = r"the true times of slices inside more than 511 others, and of the slices around them"
    assert re.search(rf"{text}(: 2| \(2\))", said)


@pytest.mark.parametrize("text", ["[]", " [\n]\n", "{}", '{"traceEvents": []}'])
def test_json_without_events_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    assert main(["query", str(path), "select 1"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("unread: the whole trace: it is empty.")


def test_json_form_of_messages_is_refused(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(tmp_path / "t.json")
    assert main(["convert", trace, text]) == 0
    assert main(["query", text, "select 1"]) == 1
    assert "it is JSON: make packets of it, with `stretto convert`" in capsys.readouterr().err


def test_longest_slices_have_a_process_on_any_track(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with record() as recorded:
        track = stretto.Track("lane")
        category.begin("task", track=track)
        category.end(track=track)
        with category.slice("work"):
            pass
    path = tmp_path / "t.pftrace"
    path.write_bytes(recorded.trace)
    assert main(["query", str(path), "--ask", "longest", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == {"task", "work"}
    assert all(row["process"] for row in rows)
