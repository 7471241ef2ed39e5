"""The short form of `bench/samplers.py` prints all rows that need no peer."""

from __future__ import annotations

import pytest

from tests.support.bench_rows import bench_rows

pytestmark = [pytest.mark.thorough, pytest.mark.once]
ROWS = [
    f"{row} {rate}"
    for rate in ("1000hz", "10000hz")
    for row in ("target", "target timer", "target bare", "own", "own timer")
]
ROWS += ["own idle", "shares", "bytes attach", "bytes record", "impossible"]


def test_short_form_prints_all_rows() -> None:
    rows, _ = bench_rows("samplers", "--pairs", "1", "--rounds", "0", "--seconds", "1")
    # The rows of the split need `perf`, and the right to use it.
    assert [name for name in rows if not name.startswith("split ")] == ROWS
    for name in ("bytes attach", "bytes record"):
        assert rows[name]["ours"] <= rows[name]["peer"]
