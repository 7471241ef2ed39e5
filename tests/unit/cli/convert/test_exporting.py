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


def test_input_is_not_overwritten(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", trace, trace, "--to", "collapsed"]) == 2
    assert "is the input" in capsys.readouterr().err


def test_file_that_is_no_trace_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text("hello")
    assert main(["convert", str(tmp_path / "x"), str(tmp_path / "o.pprof")]) == 1
    assert "no trace" in capsys.readouterr().err
