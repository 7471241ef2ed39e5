"""Checks whether a Python can be recorded, by its command line and its environment.

A Python is recorded if it imports the `sitecustomize` of the recorder's workspace: the folder
must be on its PYTHONPATH, and no option may disable `sitecustomize`.
"""

from __future__ import annotations

import os

from stretto.recorder.workspace import VARIABLE, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_COMMAND_LENGTH = 60


def is_python(path: str) -> bool:
    """Returns whether an executable has the name of a Python interpreter."""
    return os.path.basename(path).startswith(("python", "pypy"))


def short_command(arguments: list[str]) -> str:
    """Formats a command line for a message: one line of at most 60 characters.

    The program is shown without its folder, which may be long and isn't distinctive.
    """
    words = [os.path.basename(arguments[0]), *arguments[1:]] if arguments else []
    return " ".join(" ".join(words).split())[:MAX_COMMAND_LENGTH]


def isolating_option(arguments: list[str]) -> str:
    """Returns the option of a Python command line that disables sitecustomize, or ""."""
    words = iter(arguments[1:])
    for word in words:
        if word.startswith(("-m", "-c", "--")) or not word.startswith("-") or word == "-":
            return ""
        if word in ("-W", "-X"):
            next(words, None)
        elif not word.startswith(("-W", "-X")):
            for letter in "IES":
                if letter in word:
                    return f"-{letter}"
    return ""


def option_problem(arguments: list[str]) -> str:
    """Returns why a Python with these arguments can't be recorded; "" if it can."""
    option = isolating_option(arguments)
    return f"started with {option}, which keeps recorders out" if option else ""


def environment_problem(environment: Mapping[str, str], folder: str = "") -> str:
    """Returns why a Python with this environment can't be recorded; "" if it can.

    Args:
        environment: environment with PYTHONPATH and the variable of the workspace.
        folder: workspace whose sitecustomize must be on PYTHONPATH; by default the workspace named
            by the environment.
    """
    named = environment.get(VARIABLE)
    if named is None:
        return "started with an environment of its own"
    site = Workspace(folder or named).site
    if site not in environment.get("PYTHONPATH", "").split(os.pathsep):
        return "started with a PYTHONPATH of its own"
    return ""
