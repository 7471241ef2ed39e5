"""The short form of `bench/native_heap.py` prints its rows."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.sources import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.once]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_short_form_prints_all_rows() -> None:
    done = subprocess.run(
        [sys.executable, "bench/native_heap.py", "--json", "--rounds", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["ours"] for row in map(json.loads, done.stdout.splitlines())}
    assert {"native heap malloc 64k", "native heap python 4k"} <= set(rows)
    assert all(ratio > 0.3 for ratio in rows.values())
