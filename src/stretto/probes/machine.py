"""The files that the data sources read, and the thread that they run on."""

from __future__ import annotations

import os
import re
from time import thread_time_ns

from stretto import _native
from stretto.probes import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.clock import Clock
    from stretto.base.task_runner import TaskRunner

_DIGITS = re.compile(r"[0-9]{1,9}")


class Machine:
    """A machine with its files, clock and task runner.

    Args:
        runner: Runs the periodic tasks.
        call: Runs a function on the runner's thread, and returns when it has run.
        clock: The trace clock; None for that of the real machine.
        root: The folder with `proc` and `sys`.
        tell: Shows a message to the user.
        cpu_ns: Returns the CPU time of the calling thread.
    """

    def __init__(
        self,
        runner: TaskRunner,
        call: Callable[[Callable[[], object]], object],
        clock: Clock | None = None,
        root: str = "/",
        tell: Callable[[str], object] = lambda _message: None,
        *,
        cpu_ns: Callable[[], int] = thread_time_ns,
    ) -> None:
        self.runner = runner
        self.call = call
        # A native function: after a pause, each function of Python that a sample calls is slow.
        self.now_ns: Callable[[], int] = clock.boottime_ns if clock else _native.boottime_ns
        self.tell = tell
        self.cpu_ns = cpu_ns
        self.observers: list[Callable[[str, int, int], object]] = []
        """Called with the name of a data source and the start and end of its work."""
        self._root = root

    def observed(self, name: str, work: Callable[..., object], *args: object) -> None:
        """Do the work of a data source, and inform the observers."""
        if not self.observers:
            work(*args)
            return
        start = self.now_ns()
        work(*args)
        for observe in self.observers:
            observe(name, start, self.now_ns())

    def path(self, path: str) -> str:
        """Return the full path of a file."""
        return os.path.join(self._root, path)

    def read(self, path: str) -> bytes:
        """Return the contents of a file; empty if it can't be read."""
        return files.read(self.path(path))

    def write(self, path: str, data: bytes) -> bool:
        """Write a file of /proc or /sys; return False if that fails."""
        try:
            with open(self.path(path), "wb", buffering=0) as file:
                file.write(data)
        except OSError:
            return False
        return True

    def link(self, path: str) -> str:
        """Return where a symbolic link leads to; empty if it can't be read."""
        try:
            return os.readlink(self.path(path))
        except OSError:
            return ""

    def names(self, path: str, prefix: str = "") -> list[str]:
        """Return the names in a folder that are `prefix` and a number, sorted by the number."""
        names = (name for name in self.all_names(path) if name.startswith(prefix))
        found = (name.removeprefix(prefix) for name in names)
        numbers = sorted(int(name) for name in found if _DIGITS.fullmatch(name))
        return [f"{prefix}{number}" for number in numbers]

    def all_names(self, path: str) -> list[str]:
        """Return all names in a folder; none if it can't be read."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []
