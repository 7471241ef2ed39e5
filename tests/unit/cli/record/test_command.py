"""The command `stretto record` starts fast."""

from __future__ import annotations

import subprocess
import sys

SLOW = "argparse asyncio collections dataclasses enum functools inspect re shutil signal typing"
LOADS = """
import sys
before = set(sys.modules)
from stretto.cli.main import main
main(["record", "-q", "-o", sys.argv[1], "-c", ""])
"""
REPORT = """
import atexit, sys
atexit.register(lambda: print(*set(sys.modules) - before))
"""


def test_recorder_does_not_load_slowly_imported_modules(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", REPORT + LOADS, str(tmp_path / "trace.pftrace")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(done.stdout.split())
    assert "stretto.recorder.host.recorder" in loaded
    assert not loaded & set(SLOW.split())
