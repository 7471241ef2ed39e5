"""The command line of a process, as one line of text."""

from __future__ import annotations

import shlex

from stretto.base import proc_files

_MAX_LENGTH = 120


def command_line(pid: int) -> str:
    """Return the command line of a process; its name if it has none, "" if it has ended.

    Long command lines are cut, and control characters are replaced by blanks.
    """
    if arguments := proc_files.words(pid, "cmdline"):
        return _line(shlex.join(arguments))
    return proc_files.read(pid, "comm").decode(errors="replace").strip()


def _line(text: str) -> str:
    text = "".join(each if each.isprintable() else " " for each in text)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
