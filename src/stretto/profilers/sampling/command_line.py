"""The command line of a process: as one line of text, and with the name of its program first.

python -X dev shop.py --port 80         shop.py --port 80
/opt/venv/bin/python -m pytest -q       "-m pytest" -q
python3 -c "import shop"                "python -c import shop"
gunicorn: worker [shop]                 the same: another program, or a title of its own
"""

from __future__ import annotations

import os
import shlex

from stretto.base import proc_files
from stretto.client.track_event.process_name import name_of_code

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


def named_command(words: list[str]) -> list[str]:
    """Return a command line whose first word is the name of its Python program.

    Args:
        words: The words of the command line.

    Returns:
        The words as they are if they aren't those of an interpreter with a program.
    """
    if not words or not os.path.basename(words[0]).startswith(("python", "pypy")):
        return words
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-":
        letter, value, rest = _option(rest)
        if letter == "c":
            return [name_of_code(value), *rest]
        if letter == "m":
            return [f"-m {value}", *rest]
    return words if not rest or rest[0] == "-" else [_script(rest[0]), *rest[1:]]


def _option(words: list[str]) -> tuple[str, str, list[str]]:
    """Return the first option that has a value in a word such as `-Ic`, its value, and the rest."""
    word, rest = words[0], words[1:]
    if word.startswith("--"):
        return "", "", rest[1:] if word == "--check-hash-based-pycs" else rest
    place = next((place for place, letter in enumerate(word) if letter in "cmWX"), None)
    if place is None:
        return "", "", rest
    value = word[place + 1 :]
    return (word[place], value, rest) if value else (word[place], "".join(rest[:1]), rest[1:])


def _script(path: str) -> str:
    folder, name = os.path.split(path)
    return f"-m {os.path.basename(folder)}" if name == "__main__.py" and folder else name
