"""The file with the daemon's process id, which exists while the daemon runs."""

from __future__ import annotations

import os

from stretto.base.errors import CommandError

MAX_BYTES = 32
"""The largest size of a pid file; a larger file isn't one, and is not replaced."""


class PidFile:
    """A new file with this process's id. The pid file of an earlier daemon is replaced.

    Args:
        path: the path; absolute if the process changes its working directory.

    Raises:
        CommandError: the file can't be written, or the path is a file of another kind.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            if os.path.lexists(path):
                _check_is_pid_file(path)
                os.unlink(path)
            fd = os.open(path, flags, 0o644)
            with open(fd, "w", encoding="ascii") as file:
                file.write(f"{os.getpid()}\n")
        except OSError as error:
            raise CommandError(
                f"traced: can't write the pid file {path!r}: {error.strerror}."
            ) from error

    def remove(self) -> None:
        """Remove the file, unless another daemon has replaced it."""
        try:
            if _read(self._path).strip() == str(os.getpid()).encode():
                os.unlink(self._path)
        except OSError:
            pass


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, MAX_BYTES + 1)
    finally:
        os.close(fd)


def _check_is_pid_file(path: str) -> None:
    text = _read(path)
    if len(text) > MAX_BYTES or (text.strip() and not text.strip().isdigit()):
        raise CommandError(f"traced: {path!r} isn't a pid file: choose another --pid-file.", 2)
