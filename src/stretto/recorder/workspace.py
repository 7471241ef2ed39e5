"""The private folder between the recorder and the processes that it records.

    FOLDER/                     mode 0700, named by the environment variable STRETTO_RECORD
      producer.sock             the service
      lifeline.sock             who may still connect (stretto.recorder.fork_socket)
      options                   what to record: a line per value, name, tab, value
      site/sitecustomize.py     on PYTHONPATH: the first thing a recorded Python runs
      notes/PID                 what a recorded process has to say: a line each
      failures/PID              why a Python couldn't be recorded

This module is imported by recorded processes, too, so it is light.
"""

from __future__ import annotations

import os

VARIABLE = "STRETTO_RECORD"
"""Environment variable: the folder."""

Options = dict[str, list[str]]


class Workspace:
    """The paths of the folder."""

    __slots__ = ("failures", "folder", "line", "notes", "options", "site", "socket")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.socket = os.path.join(folder, "producer.sock")
        self.line = os.path.join(folder, "lifeline.sock")
        self.options = os.path.join(folder, "options")
        self.site = os.path.join(folder, "site")
        self.notes = os.path.join(folder, "notes")
        self.failures = os.path.join(folder, "failures")

    @classmethod
    def from_environment(cls) -> Workspace | None:
        """The folder of the recorder that this process descends from, if any."""
        folder = os.environ.get(VARIABLE)
        return cls(folder) if folder else None

    def write_options(self, options: Options) -> None:
        """Leave the options for the recorded processes."""
        with open(self.options, "w", encoding="utf-8", errors="surrogateescape") as file:
            for name, values in options.items():
                file.writelines(f"{name}\t{value}\n" for value in values)

    def read_options(self) -> Options:
        """The recorder's options, in a recorded process."""
        options: Options = {}
        with open(self.options, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                name, _, value = line.rstrip("\n").partition("\t")
                options.setdefault(name, []).append(value)
        return options

    def note(self, lines: list[str]) -> None:
        """Leave word for the recorder; silently nothing if it has gone."""
        _append(os.path.join(self.notes, str(os.getpid())), lines)

    def note_failure(self, pid: int, reason: str) -> None:
        """Tell why a Python can't be recorded; silently nothing if the recorder has gone."""
        _append(os.path.join(self.failures, str(pid)), [reason])

    def read_notes(self) -> dict[int, list[str]]:
        """What recorded processes said, by pid."""
        return _read_lines(self.notes)

    def read_failures(self) -> dict[int, list[str]]:
        """Why Pythons couldn't be recorded, by pid."""
        return _read_lines(self.failures)


def _append(path: str, lines: list[str]) -> None:
    try:
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError:
        pass


def _read_lines(folder: str) -> dict[int, list[str]]:
    """The different lines of each file, by its name."""
    lines = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            lines[int(name)] = list(dict.fromkeys(file.read().splitlines()))
    return lines
