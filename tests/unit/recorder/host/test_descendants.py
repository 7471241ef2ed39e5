from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stretto.base import proc_files
from stretto.recorder.host.descendants import Descendants
from stretto.recorder.workspace import VARIABLE
from tests.support.polling import wait_until

OURS = {VARIABLE: "x", "PYTHONPATH": "y:x/site"}
WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def child():
    """Return a function that starts a waiting Python and returns its pid."""
    running = []

    def start(*options: str, code: str = WAITS, **environment: str) -> int:
        process = subprocess.Popen(
            [sys.executable, *options, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        assert process.stdout is not None
        process.stdout.readline()
        running.append(process)
        return process.pid

    yield start
    for process in running:
        process.communicate()


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def named(descendants, pid, **explained):
    return [line for line in descendants.not_followed(**explained) if line.startswith(f"{pid} ")]


def test_python_that_connects_is_not_reported_as_unrecorded(child):
    clock = Clock()
    descendants = Descendants(clock)
    pid = child(**OURS)
    descendants.on_connected(pid)
    descendants.on_connected(os.getpid())
    for clock.now in range(3):
        descendants.scan(os.getpid())
    assert not named(descendants, pid)


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["-I"], OURS, "-I, which keeps recorders out"),
        ([], {}, "an environment of its own"),
        ([], {**OURS, "PYTHONPATH": "y"}, "a PYTHONPATH of its own"),
    ],
)
def test_python_that_cannot_be_recorded_is_reported_at_the_first_scan(
    child, monkeypatch, options, environment, reason
):
    monkeypatch.delenv(VARIABLE, raising=False)
    descendants = Descendants(Clock())
    pid = child(*options, **environment)
    descendants.scan(os.getpid())
    (line,) = named(descendants, pid)
    assert reason in line
    assert not named(descendants, pid, explained={pid})


def test_process_that_executes_another_program_meanwhile_is_judged_by_the_next_scan(
    child, monkeypatch
):
    monkeypatch.delenv(VARIABLE, raising=False)
    pid = child()
    descendants = Descendants(Clock())
    # The arguments before the execve, and within it.
    read = iter([["python", "before"], []])
    with monkeypatch.context() as during:
        during.setattr(proc_files, "words", lambda *_: next(read, ["python", "after"]))
        during.setattr(proc_files, "children", lambda _: [])
        descendants.scan(pid)
    assert not named(descendants, pid)
    descendants.scan(pid)
    (line,) = named(descendants, pid)
    assert "an environment of its own" in line


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its user")
def test_python_of_another_user_is_reported_as_not_recorded(child):
    descendants = Descendants(Clock())
    pid = child(code=f"import os; os.setuid(65534); {WAITS}", **OURS)
    descendants.scan(os.getpid())
    (line,) = named(descendants, pid)
    assert "another user (65534)" in line


def test_python_that_does_not_connect_is_reported_after_the_startup_time(child):
    clock = Clock()
    descendants = Descendants(clock)
    pid = child(**OURS)
    for clock.now in (0.0, 0.5):
        descendants.scan(os.getpid())
        assert not named(descendants, pid)
    clock.now = 1.0
    descendants.scan(os.getpid())
    (line,) = named(descendants, pid)
    assert "never connected" in line
    descendants.on_connected(pid)
    descendants.scan(os.getpid(), {pid})
    assert not named(descendants, pid)


def test_connected_process_that_executes_an_isolated_python_is_reported_as_not_recorded(child):
    descendants = Descendants(Clock())
    pid = child("-I", **OURS)
    descendants.on_connected(pid)
    descendants.scan(os.getpid(), {pid})
    assert not named(descendants, pid)
    descendants.scan(os.getpid())
    assert named(descendants, pid)


def test_process_that_replaced_python_by_execv_is_not_reported_as_python(child, tmp_path):
    clock = Clock()
    descendants = Descendants(clock)
    gate = tmp_path / "gate"
    code = f"""
import os, time
print("ready", flush=True)
while not os.path.exists({str(gate)!r}): time.sleep(0.001)  # sleep: polls for the test
os.execv("/bin/cat", ["cat"])
"""
    pid = child(code=code, **OURS)
    descendants.scan(os.getpid())
    gate.touch()
    wait_until(lambda: "python" not in os.readlink(f"/proc/{pid}/exe"))
    clock.now = 5.0
    descendants.scan(os.getpid())
    assert not named(descendants, pid)
