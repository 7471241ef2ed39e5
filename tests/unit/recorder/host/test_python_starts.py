"""Starts of interpreters are detected at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.recorder.host.python_starts import GAP_MS, PythonStarts, interpreters

DEADLINE_MS = 10_000


@pytest.fixture
def runner():
    runner = SelectorTaskRunner()
    yield runner
    runner.close()


@pytest.fixture
def starts(runner, tmp_path, monkeypatch):
    """Watch a program of this test only, because other processes start Pythons too."""
    python = shutil.copy("/bin/true", tmp_path / "python3")
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", "")
    scans: list[bool] = []
    starts = PythonStarts(runner, lambda: scans.append(True))
    starts.add_all()
    starts.scans = scans  # type: ignore[attr-defined]
    yield starts
    starts.close()


def test_start_of_an_interpreter_causes_several_scans_of_the_processes(starts, runner):
    assert not runner.run_until(lambda: bool(starts.scans), 50)
    subprocess.run([sys.executable], check=True)
    assert runner.run_until(lambda: len(starts.scans) >= 3, DEADLINE_MS)


def test_scans_stop_when_the_scan_window_after_a_start_ends(starts, runner, monkeypatch):
    monkeypatch.setattr("stretto.recorder.host.python_starts.WINDOW_MS", 0)
    subprocess.run([sys.executable], check=True)
    assert runner.run_until(lambda: bool(starts.scans), DEADLINE_MS)
    assert not runner.run_until(lambda: len(starts.scans) > 1, 10 * GAP_MS)


def test_interpreter_added_as_a_link_is_watched_by_its_real_path(starts, runner, tmp_path):
    other = shutil.copy("/bin/true", tmp_path / "foreign")
    link = tmp_path / "link"
    link.symlink_to(other)
    subprocess.run([other], check=True)
    assert not runner.run_until(lambda: bool(starts.scans), 50)
    starts.add(str(link))
    starts.add(str(tmp_path / "missing"))
    subprocess.run([other], check=True)
    assert runner.run_until(lambda: bool(starts.scans), DEADLINE_MS)


def test_closed_watch_of_python_starts_causes_no_scan(starts, runner):
    subprocess.run([sys.executable], check=True)
    starts.close()
    assert not runner.run_until(lambda: bool(starts.scans), 50)
    starts.close()
    starts.add("/bin/sh")


def test_interpreters_on_path_are_found_by_name(monkeypatch, tmp_path):
    for name in ("python3.12", "python", "pypy3", "pythonista", "xpython", "python3-config"):
        (tmp_path / name).touch()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{tmp_path / 'missing'}")
    found = {os.path.basename(path) for path in interpreters()} - {os.path.basename(sys.executable)}
    assert found >= {"python3.12", "pypy3"}
    assert not found & {"pythonista", "xpython", "python3-config"}
