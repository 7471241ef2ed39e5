"""Python processes that `subprocess` starts and that can't be recorded are detected."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stretto.recorder.host import workspace_folder
from stretto.recorder.target.spawns import Spawns, reason
from stretto.recorder.workspace import VARIABLE

FOLDER = "/f"
OURS = {VARIABLE: "/f", "PYTHONPATH": f"/x:{FOLDER}/site:/y"}


@pytest.mark.parametrize(
    ("command", "env", "why"),
    [
        ("python x.py -I", OURS, ""),
        ("python -I x.py", OURS, "-I"),
        ("python -c x", {**OURS, VARIABLE: "/f"}, ""),
        ("python -c x", {name.encode(): text.encode() for name, text in OURS.items()}, ""),
        ("python -c x", {}, "environment"),
        ("python -c x", {VARIABLE: "/f"}, "PYTHONPATH"),
        ("python -c x", {**OURS, "PYTHONPATH": "/f/site2"}, "PYTHONPATH"),
        ("python -c x", None, "environment"),
    ],
)
def test_reason_names_the_option_or_variable_that_prevents_a_recording(
    monkeypatch, command, env, why
):
    monkeypatch.delenv(VARIABLE, raising=False)
    found = reason(command.split(), env, FOLDER)
    assert why in found
    assert bool(why) == bool(found)


@pytest.fixture
def workspace(monkeypatch):
    """A workspace that is not in the environment: no started Python can be recorded."""
    monkeypatch.delenv(VARIABLE, raising=False)
    original = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    workspace = workspace_folder.create({})
    Spawns(workspace)
    yield workspace
    subprocess.Popen._execute_child = original  # type: ignore[attr-defined]
    workspace_folder.remove(workspace)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ([sys.executable, "-c", ""], {}),
        ([os.fsencode(sys.executable), "-c", ""], {"close_fds": False}),
        (["whatever", "-c", ""], {"executable": sys.executable}),
    ],
)
def test_python_that_cannot_be_recorded_is_noted_with_its_process_id(workspace, command, options):
    with subprocess.Popen(command, **options) as process:
        process.wait()
    (line,) = workspace.read_failures()[process.pid]
    assert line.startswith("started with an environment of its own (")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["true"], {}),
        ("true", {}),
        (f"{sys.executable} -c ''", {"shell": True}),
        (["whatever"], {"executable": "/bin/true"}),
    ],
)
def test_started_programs_other_than_python_are_not_noted_as_unrecorded(
    workspace, command, options
):
    subprocess.run(command, **options, check=True)
    assert workspace.read_failures() == {}


@pytest.mark.parametrize("command", [[], ["python-that-is-not-there"], [object()], 7])
def test_failed_start_raises_the_same_error_as_without_a_recorder(workspace, command):
    with pytest.raises(Exception) as watched:  # noqa: PT011  # any exception
        subprocess.Popen(command)
    program = f"import subprocess\ntry: subprocess.Popen({command!r})\n"
    if "object" not in program:
        alone = subprocess.run(
            [sys.executable, "-c", f"{program}except Exception as e: print(repr(e))"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert repr(watched.value) == alone.stdout.strip()


def test_arguments_given_as_an_iterator_are_still_passed_to_the_program(workspace):
    command = iter([sys.executable, "-c", "print('whole')"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate()[0] == "whole\n"
