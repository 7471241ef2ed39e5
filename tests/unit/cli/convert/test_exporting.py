"""`stretto convert` writes the formats of other profilers' viewers."""

from __future__ import annotations

import json
import pstats
from pathlib import Path

import pytest

import stretto
from stretto.cli.main import main
from tests.support.recorded_events import record

category = stretto.Category("test.exporting")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    with record() as recorded, category.slice("work"):
        pass
    path = tmp_path / "t.pftrace"
    path.write_bytes(recorded.trace)
    return str(path)


def test_format_is_chosen_by_the_name_or_the_option(trace: str, tmp_path: Path) -> None:
    assert main(["convert", trace, str(tmp_path / "a.chrome.json")]) == 0
    events = json.loads((tmp_path / "a.chrome.json").read_text())["traceEvents"]
    assert "work" in {event["name"] for event in events}
    assert main(["convert", trace, str(tmp_path / "b"), "--to", "pstats"]) == 0
    assert pstats.Stats(str(tmp_path / "b")).total_calls == 1  # type: ignore[attr-defined]


def test_chromes_json_is_read(trace: str, tmp_path: Path) -> None:
    chrome = str(tmp_path / "a.chrome.json")
    main(["convert", trace, chrome])
    assert main(["convert", chrome, str(tmp_path / "b.speedscope.json")]) == 0
    assert "work" in (tmp_path / "b.speedscope.json").read_text()


def test_parquet_is_a_folder_of_tables(trace: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path / "out.parquet"
    assert main(["convert", trace, str(folder)]) == 0
    assert duckdb.sql(f"select name from '{folder}/slice.parquet'").fetchall() == [("work",)]
    assert main(["convert", trace, str(folder)]) == 2


def test_each_table_with_rows_is_written_for_its_owner(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with record() as recorded, category.slice("work", flow=1):
        category.instant("done", terminating_flow=1)
    trace, folder = tmp_path / "t.pftrace", tmp_path / "out.parquet"
    trace.write_bytes(recorded.trace)
    assert main(["convert", str(trace), str(folder)]) == 0
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert duckdb.sql(f"from '{folder}/flow.parquet'").fetchall()
    written = {path.stem for path in folder.iterdir()}
    assert written > {"slice", "flow", "metadata", "stats", "clock_snapshot"}
    assert "perf_sample" not in written


def test_error_of_the_folder_names_the_folder(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    folder = str(tmp_path / "missing" / "out.parquet")
    assert main(["convert", trace, folder]) == 2
    assert f"can't write {folder!r}: No such file or directory" in capsys.readouterr().err


def test_tables_are_not_written_to_standard_output(trace: str) -> None:
    assert main(["convert", trace, "-", "--to", "parquet"]) == 2
    assert not Path("-").exists()


def test_folder_is_removed_if_a_table_cannot_be_written(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    from stretto.analysis.duckdb_engine import DuckdbResult

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DuckdbResult, "parquet", full)
    assert main(["convert", trace, str(tmp_path / "out.parquet")]) == 2
    assert not (tmp_path / "out.parquet").exists()


def test_input_is_not_overwritten(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", trace, trace, "--to", "collapsed"]) == 2
    assert "is the input" in capsys.readouterr().err


def test_file_that_is_no_trace_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text("hello")
    assert main(["convert", str(tmp_path / "x"), str(tmp_path / "o.pprof")]) == 1
    assert "no trace" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["collapsed", "speedscope", "pprof", "firefox", "pstats"])
def test_profile_of_a_trace_without_slices_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    with record() as recorded:
        category.counter("queue", 1)
    trace, out = tmp_path / "t.pftrace", tmp_path / "out"
    trace.write_bytes(recorded.trace)
    assert main(["convert", str(trace), str(out), "--to", target]) == 1
    error = f"has no slices and no samples: there is nothing to convert to {target}.\n"
    assert capsys.readouterr().err == f"stretto: convert: {str(trace)!r} {error}"
    assert not out.exists()
    assert main(["convert", str(trace), str(out), "--to", "jsonl"]) == 0


def test_error_of_a_table_is_one_line_of_the_verb(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    from stretto.analysis import table_choice

    monkeypatch.setattr(table_choice, "ALWAYS", ["(select 9223372036854775807 + ts from slice)"])
    assert main(["convert", trace, str(tmp_path / "out.parquet")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    beginning = f"stretto: convert: {trace!r}: Out of Range Error: Overflow in addition"
    assert line.startswith(beginning)
    assert not (tmp_path / "out.parquet").exists()
