"""The short form of `bench/native_heap.py` prints its rows."""

from __future__ import annotations

import shutil

import pytest

from tests.support.bench_rows import bench_rows

pytestmark = [pytest.mark.thorough, pytest.mark.once]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_short_form_prints_all_rows() -> None:
    rows, _ = bench_rows("native_heap", "--rounds", "1")
    assert {"native heap malloc 64k", "native heap python 4k"} <= set(rows)
    assert all(row["ours"] > 0.3 for row in rows.values())
