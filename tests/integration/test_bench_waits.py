"""The short form of `bench/waits.py` prints all rows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.sources import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.once]
ROWS = ["sum lock", "sum queue", "sum sleep", "sum read", "sum gil", "free lock", "free RLock"]
ROWS += ["free lock, off", "written wait", "short wait"]


def test_short_form_prints_all_rows() -> None:
    done = subprocess.run(
        [sys.executable, "bench/waits.py", "--json", "--rounds", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["name"] for row in rows] == ROWS
