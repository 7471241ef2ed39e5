"""The blocks of docs/analysis.md run: they need DuckDB, and some lines need pandas."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from tests.support.documentation import blocks_of
from tests.support.sources import ROOT

pytest.importorskip("duckdb", reason="SQL needs duckdb")
pytestmark = pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")

ALL_BLOCKS = blocks_of(ROOT / "docs" / "analysis.md")


def block_with(language: str, text: str) -> str:
    (found,) = (b.text for b in ALL_BLOCKS if b.language == language and text in b.text)
    return found


@pytest.fixture(autouse=True)
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with stretto.recording("trace.pftrace"), stretto.Category("shop").slice("quote"):
        pass


def test_python_block_prints_the_slices(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas", reason="a line of the block needs pandas")
    variables: dict[str, object] = {}
    exec(block_with("python", "analysis import TraceProcessor"), variables)  # the page's own block
    assert capsys.readouterr().out.startswith("quote ")
    assert len(variables["frame"]) == 1  # type: ignore[arg-type]


def test_sql_block_gives_the_slices_of_the_thread() -> None:
    from stretto.analysis import TraceProcessor

    with TraceProcessor("trace.pftrace") as processor:
        ((_, name, duration),) = processor.query(block_with("sql", "thread.name")).fetchall()
    assert name == "quote"
    assert duration >= 0


def test_sql_block_of_raw_events_runs() -> None:
    from stretto.analysis import TraceProcessor

    with TraceProcessor("trace.pftrace") as processor:
        assert processor.query(block_with("sql", "from ftrace_event")).fetchall() == []


def test_block_for_the_package_perfetto_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas", reason="a line of the block needs pandas")
    variables: dict[str, object] = {}
    exec(block_with("python", "BatchTraceProcessor"), variables)
    assert capsys.readouterr().out.startswith("quote ")
    assert len(variables["frame"]) == 1  # type: ignore[arg-type]


@pytest.fixture
def traces(trace: None) -> Path:
    folder = Path("traces")
    folder.mkdir()
    for name in ("a", "b"):
        shutil.copy("trace.pftrace", folder / f"{name}.pftrace")
    return folder.absolute()


def test_batch_block_asks_each_trace(traces: Path) -> None:
    pytest.importorskip("pandas", reason="a line of the block needs pandas")
    Path("program.py").write_text(block_with("python", "Batch, Trace"))
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("1 of 2\n2 of 2\n")
    assert len(list(Path("tables/slice").glob("*/0.parquet"))) == 2


@pytest.mark.once
def test_dask_block_asks_on_a_cluster(traces: Path) -> None:
    distributed = pytest.importorskip("distributed")
    block = block_with("python", "dask")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=None,
        local_directory=str(traces.parent),
    ) as cluster:
        there = block.replace("tcp://scheduler:8786", cluster.scheduler_address)
        exec(there.replace("s3://bucket", f"file://{traces}"), {})
