"""The private folder between the recorder and the processes that it records.

    FOLDER/                     mode 0700, named by the environment variable STRETTO_RECORD
      producer.sock             the service
      options                   what to record: a line per value, name, tab, value
      site/sitecustomize.py     on PYTHONPATH: the first thing a recorded Python runs
      notes/PID                 what a process has to say: a line each

This module is imported by recorded processes, too, so it is light.
"""

from __future__ import annotations

import os

VARIABLE = "STRETTO_RECORD"
"""Environment variable: the folder."""

Options = dict[str, list[str]]


class Workspace:
    """The paths of the folder."""

    __slots__ = ("folder", "notes", "options", "site", "socket")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.socket = os.path.join(folder, "producer.sock")
        self.options = os.path.join(folder, "options")
        self.site = os.path.join(folder, "site")
        self.notes = os.path.join(folder, "notes")

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
        try:
            path = os.path.join(self.notes, str(os.getpid()))
            with open(path, "a", encoding="utf-8", errors="replace") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError:
            pass

    def read_notes(self) -> dict[int, list[str]]:
        """What the processes said, by pid."""
        notes = {}
        for name in os.listdir(self.notes):
            with open(os.path.join(self.notes, name), encoding="utf-8", errors="replace") as file:
                notes[int(name)] = list(dict.fromkeys(file.read().splitlines()))
        return notes
