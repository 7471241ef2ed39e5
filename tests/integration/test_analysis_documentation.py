"""The blocks of docs/analysis.md run: they need DuckDB, and one line needs pandas."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from tests.support.documentation import blocks_of
from tests.support.sources import ROOT

pytest.importorskip("duckdb", reason="SQL needs duckdb")
pytestmark = pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")

BLOCKS = {block.language: block.text for block in blocks_of(ROOT / "docs" / "analysis.md")}


@pytest.fixture(autouse=True)
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with stretto.recording("trace.pftrace"), stretto.Category("shop").slice("quote"):
        pass


def test_python_block_prints_the_slices(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas", reason="a line of the block needs pandas")
    variables: dict[str, object] = {}
    exec(BLOCKS["python"], variables)  # the page's own block
    assert capsys.readouterr().out.startswith("quote ")
    assert len(variables["frame"]) == 1  # type: ignore[arg-type]


def test_sql_block_gives_the_slices_of_the_thread() -> None:
    from stretto.analysis import TraceProcessor

    with TraceProcessor("trace.pftrace") as processor:
        ((_, name, duration),) = processor.query(BLOCKS["sql"]).fetchall()
    assert name == "quote"
    assert duration >= 0
