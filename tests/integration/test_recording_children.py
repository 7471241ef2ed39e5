"""`stretto.recording(children=True)` records this process and its children in one trace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import stretto
from stretto.base.errors import SessionError, TransportError
from tests.support.recorded import alone, check_trace, names, pids

PROGRAM = """
import multiprocessing, os, subprocess, sys
import stretto

category = stretto.Category("test")

def in_pool(number):
    with category.slice("pooled", number=number):
        return os.getpid()

if __name__ == "__main__":
    before = dict(os.environ)
    with stretto.recording(sys.argv[1], children=True, functions="functions" in sys.argv):
        with category.slice("parent"):
            if (pid := os.fork()) == 0:
                category.instant("forked")
                os._exit(0)
            os.waitpid(pid, 0)
            subprocess.run([sys.executable, "-c", sys.argv[2]], check=True)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                pool.map(in_pool, range(3))
    assert dict(os.environ) == before
    category.instant("after")
"""
CHILD = """
import stretto
def work(): stretto.instant("in the child")
work()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_children_started_by_fork_subprocess_and_multiprocessing_are_recorded(
    oracle, tmp_path, script
):
    trace = tmp_path / "trace"
    run = alone(sys.executable, str(script), str(trace), CHILD)
    assert (run.status, run.stderr) == (0, "")
    loaded = check_trace(oracle, trace.read_bytes())
    assert {"parent", "in the child", "pooled", "forked"} <= names(loaded)
    assert not {"after", "work"} & names(loaded)
    assert len(pids(loaded)) == 4
    assert loaded.query("select count(*) from slice where name = 'pooled'") == [(3,)]
    assert trace.stat().st_mode & 0o777 == 0o600


def test_calls_of_child_processes_are_recorded_with_the_option_functions(oracle, tmp_path, script):
    trace = tmp_path / "trace"
    run = alone(sys.executable, str(script), str(trace), CHILD, "functions")
    assert (run.status, run.stderr) == (0, "")
    assert {"work", "in_pool"} <= names(oracle(trace.read_bytes()))


def test_recording_into_an_unwritable_path_is_refused(tmp_path):
    with pytest.raises(TransportError, match="did not start"):
        stretto.recording(tmp_path / "missing" / "trace", children=True).__enter__()
    assert "STRETTO_RECORD" not in os.environ


def test_recording_children_within_stretto_record_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("STRETTO_RECORD", str(tmp_path))
    with pytest.raises(SessionError, match="already"):
        stretto.recording(tmp_path / "trace", children=True).__enter__()


def test_recorder_process_ends_with_the_recording(tmp_path):
    with stretto.recording(tmp_path / "trace", children=True):
        stretto.instant("here")
    assert (tmp_path / "trace").stat().st_size > 0
    lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in " ".join(lists).split()]
    assert not [command for command in commands if b"stretto\0record" in command]


FORKING = """
import os, sys, stretto
with stretto.recording(sys.argv[1], children=True):
    os.register_at_fork(after_in_parent=lambda: sum(range(100)))  # runs after ours
    for _ in range(5):
        if os.fork() == 0:
            os._exit(0)
        os.wait()
"""


def test_no_second_thread_runs_until_all_at_fork_hooks_have_run(tmp_path):
    """CPython 3.12 and later warn of a fork if a second thread runs after the at-fork hooks."""
    run = alone(sys.executable, "-W", "always", "-c", FORKING, str(tmp_path / "trace"))
    assert (run.status, run.stderr) == (0, "")


LIVING_CHILD = """
import ctypes, os, pathlib, signal, sys, stretto
_, path, way, killed = sys.argv
fork = os.fork if way == "python" else ctypes.PyDLL(None).fork
def children():
    lists = [path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/children")]
    return map(int, " ".join(lists).split())
def is_recorder(pid):
    return b"\\0record\\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
sys.unraisablehook = lambda _: None  # reports that the recorder was killed
with stretto.recording(path, children=True):
    if (pid := fork()) == 0:
        signal.alarm(30)
        signal.pause()
    if killed == "killed":
        (recorder,) = [child for child in children() if child != pid and is_recorder(child)]
        os.kill(recorder, signal.SIGKILL)
print("child lives" if os.waitpid(pid, os.WNOHANG) == (0, 0) else "child has ended")
os.kill(pid, signal.SIGKILL)
"""


@pytest.mark.parametrize("killed", ["ended", "killed"])
@pytest.mark.parametrize("way", ["python", "native"])
def test_end_of_the_block_does_not_wait_for_children_with_open_recorder_pipes(
    tmp_path, way, killed
):
    """At-fork hooks close a child's copies of the pipes; a child forked in C runs no hooks."""
    trace = tmp_path / "trace"
    run = alone(sys.executable, "-c", LIVING_CHILD, str(trace), way, killed)
    assert (run.status, run.stdout, run.stderr) == (0, "child lives\n", "")
    assert trace.exists() is (killed == "ended")
