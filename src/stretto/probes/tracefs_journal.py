"""A file that says how to restore a folder of tracefs, should this process be killed.

Each line is written before the change that it restores. The next session that finds the file, and
the folder unlocked, restores the folder.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "run/stretto-ftrace"
"""The folder of journals, below the root folder. It is empty after a restart of the machine."""


class Journal:
    """The earlier contents of files.

    Args:
        root: The folder with `run`.
        path: The folder of tracefs.
    """

    def __init__(self, root: str, path: str) -> None:
        name = os.path.relpath(path, root).replace("/", "-")
        self._path = os.path.join(root, FOLDER, f"{name}.jsonl")
        self._target = path

    def add(self, name: str, text: str) -> None:
        """Note what restores a file; without effect if no journal can be written."""
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps([self._target, name, text]) + "\n")
        except OSError:
            pass  # Then only a kill leaves the folder changed.

    def remove(self) -> None:
        """Delete the journal, after the folder was restored."""
        try:
            os.unlink(self._path)
        except OSError:
            pass  # Nothing was changed.


def left(root: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each folder that has a journal, and what restores its files, in the changes' order."""
    folder = os.path.join(root, FOLDER)
    try:
        paths = [entry.path for entry in os.scandir(folder)]
    except OSError:
        return
    for path in paths:
        changes = list(_changes(path))
        if changes and os.path.isdir(changes[0][0]):
            first: dict[str, str] = {}
            for _, name, text in changes:
                first.setdefault(name, text)
            yield changes[0][0], first
        else:
            os.unlink(path)


def _changes(path: str) -> Iterator[tuple[str, str, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                target, name, text = json.loads(line)
                yield target, name, text
    except (OSError, ValueError):
        return  # The last line was being written when the process was killed.
