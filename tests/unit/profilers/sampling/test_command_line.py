"""The names of programs on command lines."""

from __future__ import annotations

import pytest

from stretto.profilers.sampling.command_line import named_command

SPAWNED = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["python", "shop.py", "-m", "80"], ["shop.py", "-m", "80"]),
        (["/opt/v/bin/python3.12", "-X", "dev", "-IWerror", "/srv/shop.py"], ["shop.py"]),
        (["python", "-u", "--check-hash-based-pycs", "never", "shop.py"], ["shop.py"]),
        (["python", "-Im", "pytest", "-q"], ["-m pytest", "-q"]),
        (["python", "-mpytest", "-q"], ["-m pytest", "-q"]),
        (["python", "/srv/shop/__main__.py"], ["-m shop"]),
        (["python", "__main__.py"], ["__main__.py"]),
        (["python", "-c", "import  shop\nrun()", "a"], ["python -c import shop run()", "a"]),
        (["python", "-c", "x" * 50], [f"python -c {'x' * 40}…"]),
        (
            ["python", "-c", SPAWNED, "--multiprocessing-fork"],
            ["multiprocessing spawn", "--multiprocessing-fork"],
        ),
    ],
)
def test_python_program_is_named_first(command: list[str], named: list[str]) -> None:
    assert named_command(command) == named


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["python"],
        ["python", "-i"],
        ["python", "-"],
        ["python", "-X"],
        ["uwsgi", "--ini", "x"],
        ["gunicorn: worker [shop]"],
    ],
)
def test_other_command_lines_are_kept(command: list[str]) -> None:
    assert named_command(command) == command
