"""Finds the program's descendants, and the reasons why some Python processes aren't recorded.

Reads /proc when `scan` is called; a process that starts and ends between two scans is missed.
"""

from __future__ import annotations

import os
import time

from stretto.base import proc_files
from stretto.recorder.python_command import (
    environment_problem,
    is_python,
    option_problem,
    short_command,
)
from stretto.recorder.workspace import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

STARTUP_S = 1.0
"""A Python that lives longer without connecting isn't just starting."""

NEVER_CONNECTED = "it never connected"


def has_living_processes(folder: str) -> bool:
    """Return whether a process with this workspace in its environment is running.

    Processes that have left the program's process tree are included, and so are their forks.
    """
    variable = f"{VARIABLE}={folder}\0".encode()
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return any(variable in proc_files.read(pid, "environ") for pid in pids)


def _runs_python(pid: int) -> bool:
    try:
        return is_python(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False


def _reason(pid: int, arguments: list[str]) -> str:
    """Return why a process isn't recorded, from its command line and environment."""
    if problem := option_problem(arguments):
        return problem
    if (user := proc_files.effective_user(pid)) not in (-1, os.geteuid()):
        return f"started as another user ({user}), who can't reach the recorder"
    problem = _reason_in_environment(pid)
    # Within an execve environment and arguments are empty; after it, the arguments are new ones.
    is_another = not arguments or proc_files.words(pid, "cmdline") != arguments
    return NEVER_CONNECTED if is_another or not problem else problem


def _reason_in_environment(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="surrogateescape") as file:
            words = file.read().split("\0")
    except OSError:
        return ""  # The process has ended, or its environment isn't readable.
    return environment_problem(dict(word.split("=", 1) for word in words if "=" in word))


class _UnconnectedPython:
    """A Python process that isn't connected to the recorder."""

    __slots__ = ("command", "lived_s", "reason", "since")

    def __init__(self, pid: int, now: float) -> None:
        arguments = proc_files.words(pid, "cmdline")
        self.command = short_command(arguments)
        self.reason = _reason(pid, arguments)
        self.since = now
        self.lived_s = 0.0

    @property
    def is_reported(self) -> bool:
        """Whether the summary lists the process. A process that has just started isn't listed."""
        return self.reason != NEVER_CONNECTED or self.lived_s >= STARTUP_S


class Descendants:
    """The processes of the program.

    Args:
        clock: returns the time in s.

    Attributes:
        followed: pids of all processes that have connected.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: set[int] = set()
        self._unconnected: dict[int, _UnconnectedPython] = {}
        self.followed: set[int] = set()

    def on_connected(self, pid: int) -> None:
        """Record that a process has connected to the recorder."""
        self.followed.add(pid)
        self._unconnected.pop(pid, None)

    def scan(self, program: int, connected: Container[int] = ()) -> None:
        """Walk the process trees below `program` and below all processes of earlier scans.

        Args:
            program: pid of the program.
            connected: pids of the processes that are connected now.
        """
        waiting = [program, *self._known]
        seen: set[int] = set()
        while waiting:
            pid = waiting.pop()
            if pid in seen or not os.path.exists(f"/proc/{pid}"):
                continue
            seen.add(pid)
            if pid not in connected:
                self._check(pid)
            waiting += proc_files.children(pid)
        self._known = seen

    def _check(self, pid: int) -> None:
        known = self._unconnected.get(pid)
        now = self._clock()
        # If no reason is known, check the process again: it may have executed another program.
        if known is None or known.reason == NEVER_CONNECTED:
            self._unconnected.pop(pid, None)
            if not _runs_python(pid):
                return
            found = _UnconnectedPython(pid, known.since if known else now)
            # The process was connected before. Either it is about to end, or it has executed
            # another Python program, which will connect.
            if pid in self.followed and found.reason == NEVER_CONNECTED:
                return
            known = self._unconnected[pid] = found
        known.lived_s = now - known.since

    def not_followed(self, explained: Container[int] = ()) -> list[str]:
        """Return one line of text for each Python process that didn't connect.

        Args:
            explained: pids to omit, because their reason is reported already.
        """
        return [
            f"{pid} ({found.command}): {found.reason}"
            for pid, found in self._unconnected.items()
            if pid not in explained and found.is_reported
        ]
