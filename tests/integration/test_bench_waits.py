"""The short form of `bench/waits.py` prints all rows."""

from __future__ import annotations

import pytest

from tests.support.bench_rows import bench_rows

pytestmark = [pytest.mark.thorough, pytest.mark.once]
ROWS = ["sum lock", "sum queue", "sum sleep", "sum read", "sum gil", "free lock", "free RLock"]
ROWS += ["free lock, off", "written wait", "short wait"]


def test_short_form_prints_all_rows() -> None:
    rows, _ = bench_rows("waits", "--rounds", "1")
    assert list(rows) == ROWS
