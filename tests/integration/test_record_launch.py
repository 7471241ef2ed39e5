"""`stretto record` starts Python before it imports the service; Python waits for the service."""

from __future__ import annotations

import subprocess
import sys

from tests.support.recorded import TIMEOUT_S

LAUNCHES = """
import os, sys
from stretto.recorder.host.launch import Launch
from stretto.recorder.host.options import RecordingOptions
arguments = [sys.executable, *sys.argv[1:]]
launch = Launch(RecordingOptions(), sys.executable, arguments, to_stdout=False)
print(launch.program.pid > 0, "stretto.service" in sys.modules)
launch.cancel()
print(launch.program.ended, os.path.exists(launch.workspace.folder))
"""


def launch(*arguments: str) -> list[str]:
    """Start and cancel a program; return the printed lines."""
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHES, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return done.stdout.splitlines()


def test_python_program_starts_first_and_runs_no_line_if_the_recording_fails():
    assert launch("-c", "print('ran')") == ["True False", "True False"]


def test_python_that_ignores_the_recorder_starts_after_the_service():
    assert launch("-I", "-c", "print('ran')") == ["False False", "False False"]
