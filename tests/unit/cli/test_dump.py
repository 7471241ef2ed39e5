"""`stretto dump`: the stacks of a running process."""

from __future__ import annotations

import json
import sys

import pytest

from stretto.cli.main import main
from tests.support.python_targets import ASLEEP, BUSY, running


def test_text_has_threads_with_their_calls(capsys: pytest.CaptureFixture[str]) -> None:
    with running(BUSY) as program:
        assert main(["dump", str(program.pid)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Process {program.pid}: {sys.executable} -c ")
    assert "CPython {}.{}\n".format(*sys.version_info) in text
    assert f'Thread {program.pid} "' in text
    assert "    waits (<string>:13)\n    Thread.run (" in text


def test_json_has_the_threads_with_their_frames(capsys: pytest.CaptureFixture[str]) -> None:
    with running(ASLEEP) as program:
        assert main(["dump", str(program.pid), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["pid"] == program.pid
    (thread,) = content["threads"]
    assert thread["native_id"] == program.pid
    frames = [(frame["function"], frame["filename"]) for frame in thread["frames"]]
    assert frames[-2:] == [("main", "<string>"), ("<module>", "<string>")]


def test_missing_process_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "4194305"]) == 1
    assert "There is no process 4194305." in capsys.readouterr().err
