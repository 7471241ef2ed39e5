"""Reads the files of processes in /proc.

A process may end at any time, or belong to another user. So a file that can't be read counts as
empty.
"""

from __future__ import annotations

import os

READ_BYTES = 1 << 14
"""More than most files in /proc have."""


def read(pid: int, name: str) -> bytes:
    """Return the contents of /proc/PID/NAME; empty if it can't be read."""
    try:
        # A file object needs twice the time, and a recorder may read a file of each process.
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces = []
        while piece := os.read(fd, READ_BYTES):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return b""
    finally:
        os.close(fd)


def words(pid: int, name: str) -> list[str]:
    """Return the words of a file such as `cmdline` or `environ`, without empty ones."""
    return [word for word in read(pid, name).decode(errors="replace").split("\0") if word]


def stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat behind the name, from the state on; empty if unreadable.

    Source: proc(5).
    """
    return read(pid, "stat").rpartition(b")")[2].split()


def effective_user(pid: int) -> int:
    """Return the user id that a process runs with; -1 if it isn't known.

    The owner of /proc/PID is not used: the owner is root after a process has changed its user.
    """
    for line in read(pid, "status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[2])
    return -1


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def thread_names(pid: int) -> list[bytes]:
    """Return the names of a process's threads, at most 15 bytes each; empty if unreadable."""
    return [read(pid, f"task/{tid}/comm").rstrip(b"\n") for tid in _threads(pid)]


def children(pid: int) -> list[int]:
    """Return the ids of a process's children; empty if they can't be read."""
    return [
        int(word) for tid in _threads(pid) for word in read(pid, f"task/{tid}/children").split()
    ]


def descendants(pid: int) -> set[int]:
    """Return the ids of a process's children, and of the children's descendants."""
    found: set[int] = set()
    waiting = children(pid)
    while waiting:
        child = waiting.pop()
        if child not in found:
            found.add(child)
            waiting += children(child)
    return found
