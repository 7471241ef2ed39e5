"""Which processes of the program are followed, and which Python ones are not, and why.

Looks at /proc when it is told to: a process that lives in between goes unnoticed.
"""

from __future__ import annotations

import os
import time

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

PATIENCE_S = 1.0
"""A Python that lives so long without connecting isn't just starting."""

NEVER = "it never connected"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def anyone_lives(folder: str) -> bool:
    """Whether a process lives that was started with the environment of this recorder.

    Also one that has left the process tree, and one that forked since then.
    """
    mark = f"{VARIABLE}={folder}\0".encode()
    pids = (name for name in os.listdir("/proc") if name.isdigit())
    return any(mark in _read(f"/proc/{pid}/environ") for pid in pids)


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    words = b" ".join(_read(f"/proc/{pid}/task/{tid}/children") for tid in threads)
    return [int(word) for word in words.split()]


def _is_python(pid: int) -> bool:
    try:
        return is_python(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False


def _reason(pid: int, arguments: list[str]) -> str:
    if problem := option_problem(arguments):
        return problem
    if (user := _user(pid)) not in (-1, os.geteuid()):
        return f"started as another user ({user}), who can't reach the recorder"
    # Without arguments it is in the middle of an execve, and has no environment either.
    return (_reason_in_environment(pid) if arguments else "") or NEVER


def _reason_in_environment(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="surrogateescape") as file:
            words = file.read().split("\0")
    except OSError:
        return ""  # it has ended, or isn't ours to look at
    return environment_problem(dict(word.split("=", 1) for word in words if "=" in word))


def _user(pid: int) -> int:
    # Not the owner of /proc/PID: that is root's where a process has changed its user.
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[2])
    return -1


class _Stranger:
    """A Python process that isn't connected."""

    __slots__ = ("command", "lived_s", "reason", "since")

    def __init__(self, pid: int, now: float) -> None:
        words = _read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
        arguments = [word for word in words if word]
        self.command = short_command(arguments)
        self.reason = _reason(pid, arguments)
        self.since = now
        self.lived_s = 0.0

    @property
    def stays_away(self) -> bool:
        """It isn't just starting, or asked for its version, or about to end."""
        return self.reason != NEVER or self.lived_s >= PATIENCE_S


class Descendants:
    """The program's processes.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: set[int] = set()
        self._strangers: dict[int, _Stranger] = {}
        self.followed: set[int] = set()
        """Pids that have ever connected."""

    def on_connected(self, pid: int) -> None:
        """A process has connected."""
        self.followed.add(pid)
        self._strangers.pop(pid, None)

    def look(self, program: int, connected: Container[int] = ()) -> None:
        """Walk the process tree below `program`; later, too, those that have moved out of it.

        Args:
            program: its pid.
            connected: pids of processes that are followed now.
        """
        waiting = [program, *self._known]
        seen: set[int] = set()
        while waiting:
            pid = waiting.pop()
            if pid in seen or not os.path.exists(f"/proc/{pid}"):
                continue
            seen.add(pid)
            if pid not in connected:
                self._meet(pid)
            waiting += _children(pid)
        self._known = seen

    def _meet(self, pid: int) -> None:
        known = self._strangers.get(pid)
        now = self._clock()
        if known is None or known.reason == NEVER:  # it may have executed something else since
            self._strangers.pop(pid, None)
            if not _is_python(pid):
                return
            stranger = _Stranger(pid, known.since if known else now)
            # One that was followed may be about to end, or has executed another Python.
            if pid in self.followed and stranger.reason == NEVER:
                return
            known = self._strangers[pid] = stranger
        known.lived_s = now - known.since

    def not_followed(self, said_why: Container[int] = ()) -> list[str]:
        """Pythons that stayed away: a line each, but for those that have said why."""
        return [
            f"{pid} ({stranger.command}): {stranger.reason}"
            for pid, stranger in self._strangers.items()
            if pid not in said_why and stranger.stays_away
        ]
