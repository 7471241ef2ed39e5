"""Tests of one group run in one process, also when the other tests run in several.

pytest-xdist tells the group of a test by the end of its node id. pytest 9.2 does not let it write
there, and says nothing: all groups are lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.xdist_group("meta")
def test_groups_are_known_to_the_processes(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@meta")


def test_results_name_a_test_without_its_group(tmp_path: Path) -> None:
    name = "test_groups_are_known_to_the_processes"
    arguments = ["-n1", "--dist=loadgroup", f"--junitxml={tmp_path}/results.xml"]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, f"{__file__}::{name}"],
        env={key: os.environ[key] for key in os.environ if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout
    assert f'name="{name}"' in (tmp_path / "results.xml").read_text()
