"""The command line of a process, as one line of text."""

from __future__ import annotations

import shlex
from pathlib import Path

_MAX_LENGTH = 120


def command_line(pid: int) -> str:
    """Return the command line of a process; its name if it has none, "" if it has ended.

    Long command lines are cut, and control characters are replaced by blanks.
    """
    folder = Path(f"/proc/{pid}")
    try:
        arguments = folder.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        if arguments != [b""]:
            return _line(shlex.join(each.decode(errors="replace") for each in arguments))
        return folder.joinpath("comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _line(text: str) -> str:
    text = "".join(each if each.isprintable() else " " for each in text)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
