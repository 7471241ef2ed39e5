"""The short form of `bench/heap.py` prints its rows, and the trace is small."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.sources import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.once]


def test_short_form_prints_all_rows() -> None:
    done = subprocess.run(
        [sys.executable, "bench/heap.py", "--json", "--rounds", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert {"heap cpu 64k", "heap cpu 4k", "heap cpu tracemalloc"} <= set(rows)
    graph = {name: rows[f"graph {name}"]["ours"] for name in ("pause", "cpu", "memory", "bytes")}
    assert all(graph.values())
    assert graph["bytes"] < 60
    if "not installed" not in done.stderr:
        assert rows["heap file"]["ours"] * 20 <= rows["heap file"]["peer"]
