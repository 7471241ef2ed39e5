from __future__ import annotations

import sys

import pytest

from stretto.base.errors import CommandError
from stretto.cli.record.executable import resolve


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    for name, mode in (("app.py", 0o755), ("plain", 0o644), ("tool", 0o755), ("bin/cmd", 0o755)):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    for name in ("pkg", "folder"):
        (tmp_path / name).mkdir()
    (tmp_path / "pkg" / "__main__.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "program",
    [
        ["app.py", "1"],
        ["plain"],
        ["pkg", "-x"],
        ["-m", "mod", "1"],
        ["-mmod"],
        ["-c", "code"],
        ["-"],
    ],
)
def test_scripts_modules_and_code_are_run_by_python(program):
    assert resolve(program) == (sys.executable, [sys.executable, *program])


def test_command_is_found_on_path(folder):
    assert resolve(["cmd", "-c"]) == (str(folder / "bin" / "cmd"), ["cmd", "-c"])


def test_command_with_a_path_is_executed_directly():
    assert resolve(["./tool"]) == ("./tool", ["./tool"])


@pytest.mark.parametrize(
    ("program", "status", "says"),
    [
        (["missing.py"], 2, "no file 'missing.py' in"),
        (["missing"], 127, "neither a script here nor a command"),
        # `tool` is in the working directory, where a shell doesn't search for commands.
        (["tool"], 127, "neither"),
        (["./missing"], 127, "neither"),
        (["./folder"], 126, "can't be executed"),
        (["-m"], 2, "-m needs a module"),
        (["-c"], 2, "-c needs a code"),
    ],
)
def test_program_that_cannot_be_run_is_an_error(program, status, says):
    with pytest.raises(CommandError, match=says) as caught:
        resolve(program)
    assert caught.value.exit_code == status
