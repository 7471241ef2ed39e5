"""Which processes of the program are followed, and which Python ones are not, and why.

Looks at /proc now and then: a process that lives shorter than that goes unnoticed.
"""

from __future__ import annotations

import os

from stretto.cli.record import workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

PATIENCE_LOOKS = 2
"""A Python that was seen so often without connecting isn't just starting."""


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
    mark = f"{workspace.VARIABLE}={folder}\0".encode()
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
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False
    return program.startswith(("python", "pypy"))


def isolating_option(arguments: list[str]) -> str:
    """The option on a Python's command line that keeps sitecustomize out, if any."""
    words = iter(arguments[1:])
    for word in words:
        if word.startswith(("-m", "-c", "--")) or not word.startswith("-") or word == "-":
            return ""
        if word in ("-W", "-X"):
            next(words, None)
        elif not word.startswith(("-W", "-X")):
            for letter in "IES":
                if letter in word:
                    return f"-{letter}"
    return ""


def _reason(pid: int, arguments: list[str]) -> str:
    option = isolating_option(arguments)
    if option:
        return f"started with {option}, which keeps recorders out"
    environment = _read(f"/proc/{pid}/environ")
    if workspace.VARIABLE.encode() + b"=" not in environment:
        return "started with an environment of its own"
    return "it never connected"


class _Stranger:
    """A Python process that hasn't connected."""

    __slots__ = ("command", "looks", "reason")

    def __init__(self, pid: int) -> None:
        words = _read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
        arguments = [word for word in words if word]
        self.command = " ".join(arguments)[:60]
        self.reason = _reason(pid, arguments)
        self.looks = 1


class Descendants:
    """The program's processes."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._strangers: dict[int, _Stranger] = {}
        self.followed: set[int] = set()
        """Pids that have ever connected."""

    def on_connected(self, pid: int) -> None:
        """A process has connected."""
        self.followed.add(pid)
        self._strangers.pop(pid, None)

    def look(self, program: int) -> None:
        """Walk the process tree below `program`; later, too, those that have moved out of it."""
        waiting = [program, *self._known]
        seen: set[int] = set()
        while waiting:
            pid = waiting.pop()
            if pid in seen or not os.path.exists(f"/proc/{pid}"):
                continue
            seen.add(pid)
            self._meet(pid)
            waiting += _children(pid)
        self._known = seen

    def _meet(self, pid: int) -> None:
        if pid in self.followed:
            return
        if pid in self._strangers:
            self._strangers[pid].looks += 1
        elif _is_python(pid):
            self._strangers[pid] = _Stranger(pid)

    def not_followed(self, said_why: Container[int] = ()) -> list[str]:
        """Pythons that stayed away: a line each, but for those that have said why."""
        return [
            f"{pid} ({stranger.command}): {stranger.reason}"
            for pid, stranger in self._strangers.items()
            if pid not in said_why
            and (stranger.looks >= PATIENCE_LOOKS or stranger.reason != "it never connected")
        ]
