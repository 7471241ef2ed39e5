"""The command `stretto record` starts fast, and leaves no files if it is interrupted before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stretto.cli.record import command
from stretto.recorder.host.launch import Launch

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


@pytest.mark.parametrize("mode", ["--auto", "--ring"])
def test_ctrl_c_before_the_program_starts_leaves_no_files(mode, tmp_path, monkeypatch):
    folders = []

    def interrupted(self):
        folders.append(Path(self.workspace.producer_socket).parent)
        raise KeyboardInterrupt

    monkeypatch.setattr(Launch, "start_program", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command.run([mode, "-o", str(tmp_path / "trace.pftrace"), "-c", ""])
    assert list(tmp_path.iterdir()) == []
    assert [folder.exists() for folder in folders] == [False]
