"""`stretto top` shows the functions of a running process live."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from stretto.cli.top import View
from stretto.profilers.sampling.interned_stacks import FunctionKey
from stretto.profilers.sampling.process import CPU, WALL
from stretto.profilers.sampling.profile import FunctionSamples
from stretto.profilers.sampling.settings import Settings
from tests.support.commands import Command
from tests.support.python_targets import BUSY, running

LEAF = FunctionKey("leaf", "app.py")
OUTER = FunctionKey("outer", "app.py")


def test_table_has_the_samples_since_the_previous_table() -> None:
    view = View(os.getpid(), Settings(CPU, 1_000_000))
    view.table([FunctionSamples(LEAF, 90, 90), FunctionSamples(OUTER, 10, 100)])
    text = view.table([FunctionSamples(LEAF, 100, 100), FunctionSamples(OUTER, 40, 140)])
    rows = [line.split() for line in text.splitlines()[-2:]]
    assert rows[0] == ["75.0", "100.0", "0.04", "outer", "app.py"]
    assert rows[1] == ["25.0", "25.0", "0.10", "leaf", "app.py"]


def test_table_without_samples_has_its_header() -> None:
    text = View(os.getpid(), Settings(CPU, 1_000_000)).table([])
    assert "0 samples of CPU time since the last table" in text
    assert "with --wall, waiting threads are sampled" in text
    assert "--wall" not in View(os.getpid(), Settings(WALL, 1_000_000)).table([])


def test_without_a_terminal_tables_have_no_control_sequences() -> None:
    with running(BUSY) as program, Command("top", str(program.pid), "-t", "2s") as command:
        assert command.wait() == 0
    assert "leaf" in command.said
    assert "\x1b" not in command.said


def test_key_q_ends_top_on_a_terminal() -> None:
    with running(BUSY) as program:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "stretto", "top", str(program.pid)]
        with subprocess.Popen(command, stdin=theirs, stdout=theirs) as process:
            os.close(theirs)
            said = b""
            while b"leaf" not in said:
                said += os.read(ours, 4096)
            assert b"\x1b[H\x1b[J" in said
            os.write(ours, b"q")
            assert process.wait(60) == 0
        os.close(ours)
        assert program.poll() is None
