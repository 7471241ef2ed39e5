"""The short form of `bench/waits.py` prints all rows."""

from __future__ import annotations

import pytest

from stretto.recorder.host.io_waits import missing_right
from tests.support.bench_rows import bench_rows

pytestmark = [pytest.mark.thorough, pytest.mark.once]
SUMS = ["sum lock", "sum queue", "sum sleep", "sum read", "sum gil"]
SYSTEM = [] if missing_right() else ["sum sleep, system", "sum read, system"]
PYTHON = ["sum sleep, Python", "sum read, Python"]
COSTS = ["free lock", "free RLock", "free lock, off", "written wait", "short wait"]


def test_short_form_prints_all_rows() -> None:
    rows, _ = bench_rows("waits", "--rounds", "1")
    assert list(rows) == SUMS + SYSTEM + PYTHON + COSTS
