"""Run the tests of tests/smoke without the native extensions, like in the pure wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from tests.support.sources import ROOT

SMOKE = ROOT / "tests" / "smoke"
DEADLINE_S = 120


@pytest.mark.parametrize("suite", ["disabled_behaviour", "tools_behaviour"])
def test_suite_passes_without_the_native_part(suite: str, tmp_path: Path) -> None:
    without_extensions = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(stretto.__file__).parent, tmp_path / "stretto", ignore=without_extensions)
    shutil.copy(SMOKE / f"{suite}.py", tmp_path)
    program = (
        "import sys, unittest; sys.path.insert(0, '.'); import stretto\n"
        "assert not stretto.available() and stretto.__file__.startswith(sys.argv.pop())\n"
        f"unittest.main('{suite}')"
    )
    ended = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", program, str(tmp_path)],
        cwd=tmp_path, check=False, capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "OK" in ended.stderr
