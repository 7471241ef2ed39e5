"""Finds the executable and the arguments for a script, a module, code or a command."""

from __future__ import annotations

import os
import sys

from stretto.base.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_FOUND_EXIT_CODE = 127
NOT_RUNNABLE_EXIT_CODE = 126
SCRIPT_SUFFIXES = (".py", ".pyw", ".pyc", ".pyz", ".zip")


def _is_script(word: str) -> bool:
    """Whether Python has to run this path: it has a script's suffix, or isn't executable."""
    if word == "-" or word.endswith(SCRIPT_SUFFIXES):
        return True
    if os.path.isdir(word):
        return os.path.exists(os.path.join(word, "__main__.py"))
    return os.path.isfile(word) and not os.access(word, os.X_OK)


def _check_script(word: str) -> None:
    if word == "-":
        return
    if not os.path.exists(word):
        raise CommandError(f"record: there is no file {word!r}{_here()}: check the path.", 2)
    if not os.access(word, os.R_OK):
        raise CommandError(f"record: {word!r} can't be read: check its permissions.", 2)


def _here() -> str:
    try:
        return f" in {os.getcwd()}"
    except OSError:
        return ", and this folder has been deleted"


def _interpreter() -> str:
    if not sys.executable:
        raise CommandError("record: the path of this Python is unknown: start Python by its path.")
    return sys.executable


def _check_complete(program: Sequence[str]) -> None:
    option = program[0]
    if option in ("-m", "-c") and len(program) < 2:
        what = "module" if option == "-m" else "code"
        raise CommandError(f"record: {option} needs a {what}.", 2)


def _command(word: str) -> str:
    from shutil import which  # The module is imported only to find a command.

    path = word if "/" in word else which(word)
    if path is None or not os.path.exists(path):
        raise CommandError(
            f"record: {word!r} is neither a script here nor a command on PATH: "
            "check the name, or use -m for a module.",
            NOT_FOUND_EXIT_CODE,
        )
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        raise CommandError(
            f"record: {word!r} can't be executed: check its permissions.", NOT_RUNNABLE_EXIT_CODE
        )
    return path


def resolve(program: Sequence[str]) -> tuple[str, list[str]]:
    """Return the path of the executable, and its argv.

    Args:
        program: the command line after the options of `stretto record`; not empty.

    Raises:
        CommandError: there is no such script, module option or command.
    """
    first = program[0]
    if first[:2] in ("-m", "-c"):
        _check_complete(program)
        return _interpreter(), [_interpreter(), *program]
    if _is_script(first):
        _check_script(first)
        return _interpreter(), [_interpreter(), *program]
    return _command(first), list(program)
