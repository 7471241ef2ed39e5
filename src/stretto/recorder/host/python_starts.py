"""Notices at once when a Python starts: some live too short for a look now and then.

The kernel tells (inotify) when somebody on this machine opens an interpreter's file, as
execve does. That costs the program nothing, and says not who: so the process tree is looked
at soon afterwards, a few times, for an execve takes its time.

    execve --> inotify --> look . look . look . . .     for WINDOW_MS after the last start

The gap between looks is GAP_MS, and at least GAP_RATIO times what a look costs. Without
inotify there are only the looks now and then.
"""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TYPE_CHECKING

from stretto import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto.base.selector_task_runner import SelectorTaskRunner

WINDOW_MS = 100.0
GAP_MS = 4.0
GAP_RATIO = 20
MAX_WATCHES = 64
READ_BYTES = 1 << 16

_PYTHON = re.compile(r"(python|pypy)[0-9.]*t?$")


def interpreters() -> Iterator[str]:
    """Pythons that a program may start: ours, and those on PATH."""
    yield sys.executable
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names if _PYTHON.match(name))


class PythonStarts:
    """Calls back when a Python may have started.

    Args:
        runner: runs it.
        look: called soon after each start, several times.
    """

    def __init__(self, runner: SelectorTaskRunner, look: Callable[[], object]) -> None:
        self._runner = runner
        self._look = look
        self._watched: set[str] = set()
        self._until = 0.0
        self._scheduled = False
        self._fd = -1
        try:
            self._fd = _native.open_watch()
        except OSError:  # the user has too many
            return
        runner.watch(self._fd, self._on_event)
        for path in interpreters():
            self.add(path)

    def add(self, path: str) -> None:
        """Watch one more interpreter; links lead to the file that is executed."""
        path = os.path.realpath(path)
        if self._fd < 0 or path in self._watched or len(self._watched) >= MAX_WATCHES:
            return
        self._watched.add(path)
        try:
            _native.watch_opens(self._fd, path)
        except OSError:
            pass  # it has gone, or isn't ours to look at

    def _on_event(self) -> None:
        try:
            os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        self._until = time.monotonic() + WINDOW_MS / 1000
        if not self._scheduled:
            self._schedule(GAP_MS)

    def _schedule(self, delay_ms: float) -> None:
        self._scheduled = True
        self._runner.post_delayed(self._run, delay_ms)

    def _run(self) -> None:
        self._scheduled = False
        if self._fd < 0:
            return
        before = time.monotonic()
        self._look()
        after = time.monotonic()
        if after < self._until:
            self._schedule(max(GAP_MS, GAP_RATIO * (after - before) * 1000))

    def close(self) -> None:
        """Watch no more."""
        if self._fd >= 0:
            self._runner.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1
