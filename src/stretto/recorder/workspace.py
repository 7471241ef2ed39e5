"""The workspace: the private folder that a recorder shares with the processes it records.

FOLDER/                     mode 0700, named by the environment variable STRETTO_RECORD
  producer.sock             the service's producer socket
  fork.sock                 fork sockets (stretto.recorder.fork_socket)
  attach.sock, attach.py    with --attach: control connection, and the script to inject
  refusals                  with --attach: FIFO for the reason why the script failed
  options                   options: one line per value: name, tab, value
  site/sitecustomize.py     on PYTHONPATH: the first code that a recorded Python runs
  notes/PID                 messages of a recorded process for the summary, one per line
  threshold                 for auto detail: duration from which calls are shown, u64 in ns
  native_heap/PID-START     with --native-heap: the samples of a process (heap_file.h)
  failures/PID              reasons why a Python can't be recorded
"""

from __future__ import annotations

import os

VARIABLE = "STRETTO_RECORD"
"""Environment variable with the path of the folder."""

Options = dict[str, list[str]]


class Workspace:
    """The folder of a recording: its paths, and access to its files.

    Args:
        folder: the path of the folder.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.producer_socket = os.path.join(folder, "producer.sock")
        self.fork_socket = os.path.join(folder, "fork.sock")
        self.control_socket = os.path.join(folder, "attach.sock")
        self.script = os.path.join(folder, "attach.py")
        self.refusals = os.path.join(folder, "refusals")
        self.options = os.path.join(folder, "options")
        self.site = os.path.join(folder, "site")
        self.notes = os.path.join(folder, "notes")
        self.failures = os.path.join(folder, "failures")
        self.native_heap = os.path.join(folder, "native_heap")
        self.threshold = os.path.join(folder, "threshold")

    @classmethod
    def from_environment(cls) -> Workspace | None:
        """Return the workspace of the recorder that this process descends from, if any."""
        folder = os.environ.get(VARIABLE)
        return cls(folder) if folder else None

    def write_options(self, options: Options) -> None:
        """Write the options for the recorded processes."""
        with open(self.options, "w", encoding="utf-8", errors="surrogateescape") as file:
            for name, values in options.items():
                file.writelines(f"{name}\t{value}\n" for value in values)

    def read_options(self) -> Options:
        """Read the options, in a recorded process."""
        options: Options = {}
        with open(self.options, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                name, _, value = line.rstrip("\n").partition("\t")
                options.setdefault(name, []).append(value)
        return options

    def note(self, lines: list[str]) -> None:
        """Append messages of this process for the summary. No effect if the folder is removed."""
        _append(os.path.join(self.notes, str(os.getpid())), lines)

    def note_failure(self, pid: int, reason: str) -> None:
        """Append the reason why a process can't be recorded; ignored if the folder is removed."""
        _append(os.path.join(self.failures, str(pid)), [reason])

    def read_notes(self) -> dict[int, list[str]]:
        """Return the messages of recorded processes, by pid."""
        return _read_lines(self.notes)

    def read_failures(self) -> dict[int, list[str]]:
        """Return the reasons why processes can't be recorded, by pid."""
        return _read_lines(self.failures)


def _append(path: str, lines: list[str]) -> None:
    try:
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError:
        pass


def _read_lines(folder: str) -> dict[int, list[str]]:
    """Return the distinct lines of each file, keyed by the name of the file."""
    lines = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            lines[int(name)] = list(dict.fromkeys(file.read().splitlines()))
    return lines
