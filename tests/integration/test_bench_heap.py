"""The short form of `bench/heap.py` prints its rows, and the trace is small."""

from __future__ import annotations

import pytest

from tests.support.bench_rows import bench_rows

pytestmark = [pytest.mark.thorough, pytest.mark.once]


def test_short_form_prints_all_rows() -> None:
    rows, said = bench_rows("heap", "--rounds", "1")
    assert {"heap cpu 64k", "heap cpu 4k", "heap cpu tracemalloc"} <= set(rows)
    graph = {name: rows[f"graph {name}"]["ours"] for name in ("pause", "cpu", "memory", "bytes")}
    assert all(graph.values())
    assert graph["bytes"] < 60
    if "not installed" not in said:
        assert rows["heap file"]["ours"] * 20 <= rows["heap file"]["peer"]
