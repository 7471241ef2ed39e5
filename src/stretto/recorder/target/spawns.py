"""Finds Python processes started by `subprocess` that can't be recorded.

Their command line and environment are checked when they are started, because they may end before
the recorder's next scan. Processes that are started otherwise, such as by a shell, are found only
by the scan.
"""

from __future__ import annotations

import os

from stretto.profilers.patch import Patch
from stretto.recorder.python_command import (
    environment_problem,
    is_python,
    option_problem,
    short_command,
)
from stretto.recorder.workspace import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from subprocess import Popen
    from typing import Any

    from stretto.recorder.workspace import Workspace

SHELL_ARGUMENT = 9
"""Index of `shell` among the arguments of Popen._execute_child."""


def _words(args: Any) -> list[str]:
    """Return the command line; empty for an iterator, which only `Popen` may consume."""
    if isinstance(args, (str, bytes, os.PathLike)):
        args = [args]
    return [os.fsdecode(word) for word in args] if isinstance(args, (list, tuple)) else []


def _variables(env: Mapping[Any, Any] | None) -> dict[str, str]:
    """Return the variables set by a recorder; names and values in `env` may be bytes."""
    if env is None or env is os.environ:
        return dict(os.environ)
    return {
        name: os.fsdecode(value)
        for name in (VARIABLE, "PYTHONPATH")
        if (value := env.get(name, env.get(name.encode()))) is not None
    }


def reason(arguments: list[str], env: Mapping[Any, Any] | None, folder: str) -> str:
    """Return why a started Python can't be recorded; "" if it can.

    Args:
        arguments: command line of the Python.
        env: environment of the Python; None for the environment of this process.
        folder: workspace whose sitecustomize must be on the PYTHONPATH of the Python.
    """
    return option_problem(arguments) or environment_problem(_variables(env), folder)


class Spawns:
    """Checks each process that `subprocess.Popen` starts.

    Args:
        workspace: receives the reason why a process can't be recorded.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        patch = Patch("subprocess", "Popen._execute_child", self._before, self._after)
        patch.switch(True)

    def _before(self, popen: Popen[Any], args: Any, executable: Any, *rest: Any) -> Any:
        """Return the process and why it can't be recorded; None if the process can be recorded."""
        shell = rest[SHELL_ARGUMENT - 2]
        words = _words(args)
        if shell or not words:
            return None
        program = os.fsdecode(executable) if executable is not None else words[0]
        if not is_python(program):
            return None
        why = reason(words, rest[4], self._workspace.folder)
        return (popen, f"{why} ({short_command(words)})") if why else None

    def _after(self, token: tuple[Popen[Any], str], _result: object) -> None:
        popen, why = token
        self._workspace.note_failure(popen.pid, why)
