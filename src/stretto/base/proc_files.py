"""Reads the files of processes in /proc.

A process may end at any time, or belong to another user. So a file that can't be read counts as
empty.
"""

from __future__ import annotations


def read(pid: int, name: str) -> bytes:
    """Return the contents of /proc/PID/NAME; empty if it can't be read."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


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
