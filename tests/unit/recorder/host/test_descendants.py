from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from stretto.recorder.host.descendants import Descendants
from stretto.recorder.workspace import VARIABLE

OURS = {VARIABLE: "x", "PYTHONPATH": "y:x/site"}
WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def child():
    """Starts Pythons that wait."""
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


def named(descendants, pid, **said_why):
    return [line for line in descendants.not_followed(**said_why) if line.startswith(f"{pid} ")]


def test_a_connected_one_is_followed(child):
    clock = Clock()
    descendants = Descendants(clock)
    pid = child(**OURS)
    descendants.on_connected(pid)
    descendants.on_connected(os.getpid())
    for clock.now in range(3):
        descendants.look(os.getpid())
    assert not named(descendants, pid)


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["-I"], OURS, "-I, which keeps recorders out"),
        ([], {}, "an environment of its own"),
        ([], {**OURS, "PYTHONPATH": "y"}, "a PYTHONPATH of its own"),
    ],
)
def test_reasons_that_are_seen_at_once(child, monkeypatch, options, environment, reason):
    monkeypatch.delenv(VARIABLE, raising=False)
    descendants = Descendants(Clock())
    pid = child(*options, **environment)
    descendants.look(os.getpid())
    (line,) = named(descendants, pid)
    assert reason in line
    assert not named(descendants, pid, said_why={pid})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its user")
def test_another_user(child):
    descendants = Descendants(Clock())
    pid = child(code=f"import os; os.setuid(65534); {WAITS}", **OURS)
    descendants.look(os.getpid())
    (line,) = named(descendants, pid)
    assert "another user (65534)" in line


def test_one_that_starts_late_is_given_time(child):
    clock = Clock()
    descendants = Descendants(clock)
    pid = child(**OURS)
    for clock.now in (0.0, 0.5):
        descendants.look(os.getpid())
        assert not named(descendants, pid)
    clock.now = 1.0
    descendants.look(os.getpid())
    (line,) = named(descendants, pid)
    assert "never connected" in line
    descendants.on_connected(pid)
    descendants.look(os.getpid(), {pid})
    assert not named(descendants, pid)


def test_a_followed_one_that_has_executed_an_isolated_python(child):
    descendants = Descendants(Clock())
    pid = child("-I", **OURS)
    descendants.on_connected(pid)
    descendants.look(os.getpid(), {pid})
    assert not named(descendants, pid)
    descendants.look(os.getpid())
    assert named(descendants, pid)


def test_one_that_has_executed_something_else(child, tmp_path):
    clock = Clock()
    descendants = Descendants(clock)
    gate = tmp_path / "gate"
    code = f"""
import os, time
print("ready", flush=True)
while not os.path.exists({str(gate)!r}): time.sleep(0.001)
os.execv("/bin/cat", ["cat"])
"""
    pid = child(code=code, **OURS)
    descendants.look(os.getpid())
    gate.touch()
    while "python" in os.readlink(f"/proc/{pid}/exe"):
        time.sleep(0.001)
    clock.now = 5.0
    descendants.look(os.getpid())
    assert not named(descendants, pid)
