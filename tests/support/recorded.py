"""Runs commands with and without `stretto record`, for comparison."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT_S = 120


@dataclass
class Run:
    """The exit status, output and trace of a finished command."""

    status: int
    stdout: str
    stderr: str
    path: Path | None = None

    @property
    def trace(self) -> bytes:
        assert self.path is not None
        return self.path.read_bytes()


def alone(*command: str, cwd: Path | None = None, **environment: str) -> Run:
    """Run a command without a recorder."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def record_command(path: Path, *arguments: str) -> list[str]:
    """Return the command line `stretto record -o path arguments`."""
    return [sys.executable, "-m", "stretto", "record", "-o", str(path), *arguments]


def record(path: Path, *arguments: str, cwd: Path | None = None, **environment: str) -> Run:
    """Run `stretto record` with these arguments."""
    run = alone(*record_command(path, *arguments), cwd=cwd, **environment)
    run.path = path
    return run


OPEN_SLICES = "select count(*) from slice where dur < 0"


def check_trace(oracle: Any, trace: bytes, *, complete: bool = True) -> Any:
    """Load a trace; fail on errors and, if `complete`, on slices without an end.

    Samples may be skipped: a stack may change each time that it is read.
    """
    loaded = oracle(trace)
    assert [error for error in loaded.errors() if error[0] != "perf_samples_skipped"] == []
    if complete:
        assert loaded.query(OPEN_SLICES) == [(0,)]
    return loaded


def names(loaded: Any) -> set[str]:
    """Return the names of all slices."""
    return {name for (name,) in loaded.query("select distinct name from slice")}


def pids(loaded: Any) -> set[int]:
    """Return the pids of the processes with slices."""
    sql = (
        "select distinct pid from slice join thread_track on track_id = thread_track.id"
        " join thread using (utid) join process using (upid)"
    )
    return {pid for (pid,) in loaded.query(sql)}
