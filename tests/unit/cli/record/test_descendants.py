from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stretto.cli.record.descendants import Descendants, isolating_option
from stretto.cli.record.workspace import VARIABLE

WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("python x.py -I", ""),
        ("python -I x.py", "-I"),
        ("python -uE x.py", "-E"),
        ("python -W Ignore -X Imp -S", "-S"),
        ("python -m mod -I", ""),
        ("python -c code -I", ""),
        ("python --help", ""),
        ("python", ""),
    ],
)
def test_options_that_keep_recorders_out(arguments, option):
    assert isolating_option(arguments.split()) == option


@pytest.fixture
def child():
    """Starts Pythons that wait."""
    running = []

    def start(*options: str, **environment: str) -> int:
        process = subprocess.Popen(
            [sys.executable, *options, "-c", WAITS],
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


def test_a_connected_one_is_followed(child):
    descendants = Descendants()
    pid = child(**{VARIABLE: "x"})
    descendants.on_connected(pid)
    descendants.on_connected(os.getpid())
    for _ in range(3):
        descendants.look(os.getpid())
    assert not [line for line in descendants.not_followed() if line.startswith(f"{pid} ")]


@pytest.mark.parametrize(
    ("options", "environment", "reason"),
    [
        (["-I"], {VARIABLE: "x"}, "-I, which keeps recorders out"),
        ([], {}, "an environment of its own"),
        ([], {VARIABLE: "x"}, "it never connected"),
    ],
)
def test_reasons(child, monkeypatch, options, environment, reason):
    monkeypatch.delenv(VARIABLE, raising=False)
    descendants = Descendants()
    pid = child(*options, **environment)
    descendants.look(os.getpid())
    descendants.look(os.getpid())
    (line,) = [line for line in descendants.not_followed() if line.startswith(f"{pid} ")]
    assert reason in line
    assert line not in descendants.not_followed(said_why={pid})


def test_one_that_starts_late_is_given_time(child):
    descendants = Descendants()
    pid = child(**{VARIABLE: "x"})
    descendants.look(os.getpid())
    assert not [line for line in descendants.not_followed() if line.startswith(f"{pid} ")]
    descendants.on_connected(pid)
    descendants.look(os.getpid())
    descendants.look(os.getpid())
    assert not [line for line in descendants.not_followed() if line.startswith(f"{pid} ")]
