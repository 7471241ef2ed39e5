"""Detects starts of Python interpreters at once, because some end before the next periodic scan.

inotify reports when any process of this machine opens an interpreter's file, as execve does.
inotify doesn't slow the program down, but doesn't report which process opened the file. So the
process tree is scanned soon afterwards, several times, because an execve takes time to complete.

    execve --> inotify --> scan . scan . scan . . .     for WINDOW_MS after the last start

The gap between scans is GAP_MS, and at least GAP_RATIO times the duration of a scan. Without
inotify there are only the periodic scans.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import start_new_thread

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto.base.selector_task_runner import SelectorTaskRunner

WINDOW_MS = 100.0
GAP_MS = 4.0
GAP_RATIO = 20
MAX_WATCHES = 64
READ_BYTES = 1 << 16
PREFIXES = ("python", "pypy")


def _is_interpreter(name: str) -> bool:
    """Return whether a name with a prefix of PREFIXES is an interpreter's.

    `python3.13t` is one, `python3-config` isn't.
    """
    version = name.removeprefix("python").removeprefix("pypy").removesuffix("t")
    return not version.strip("0123456789.")


def interpreters() -> Iterator[str]:
    """Yield the paths of Python interpreters: this one, and those on PATH."""
    yield sys.executable
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        # Thousands of names: this condition has to be fast.
        similar = [name for name in names if name.startswith(PREFIXES)]
        yield from (os.path.join(folder, name) for name in similar if _is_interpreter(name))


class PythonStarts:
    """Runs scans when a Python may have started.

    Args:
        runner: the task runner of the scans.
        scan: scans the process tree; called several times soon after each start.
    """

    def __init__(self, runner: SelectorTaskRunner, scan: Callable[[], object]) -> None:
        self._runner = runner
        self._scan = scan
        self._watched: set[int] = set()
        self._until = 0.0
        self._scheduled = False
        self._fd = -1
        try:
            self._fd = _native.open_watch()
        except OSError:  # The user has too many inotify instances.
            return
        runner.watch(self._fd, self._on_event)

    def add_all(self) -> None:
        """Watch all interpreters of `interpreters()`. Listing the folders on PATH takes 1 ms."""
        for path in interpreters():
            self.add(path)

    def add(self, path: str) -> None:
        """Watch one more interpreter: the file that is executed, if the path is a link."""
        if self._fd < 0 or len(self._watched) >= MAX_WATCHES:
            return
        try:
            self._watched.add(_native.watch_opens(self._fd, path))
        except OSError:
            pass  # The file was removed, or isn't readable.

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
        self._scan()
        after = time.monotonic()
        if after < self._until:
            self._schedule(max(GAP_MS, GAP_RATIO * (after - before) * 1000))

    def close(self) -> None:
        """Stop watching. Closing the descriptor takes some 15 ms, so a thread does it."""
        if self._fd >= 0:
            self._runner.unwatch(self._fd)
            start_new_thread(os.close, (self._fd,))
            self._fd = -1
