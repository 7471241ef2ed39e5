"""Runs the short form of a benchmark, to see that it prints its rows."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.support.sources import ROOT


def bench_rows(name: str, *options: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the rows of `bench/NAME.py` by their names, and its standard error.

    Args:
        name: The benchmark.
        options: What makes it short, beside `--json`.
    """
    done = subprocess.run(
        [sys.executable, f"bench/{name}.py", "--json", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}, done.stderr
