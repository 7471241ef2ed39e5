"""System calls that Linux, macOS and Windows name differently."""

from __future__ import annotations

import errno
import os
import sys
from _thread import allocate_lock

RECORDS = sys.platform == "linux"
"""Whether this is a system that can record: elsewhere traces are only read."""

CLOSED_ON_EXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
BINARY = getattr(os, "O_BINARY", 0)
"""Windows would convert ends of lines without it."""
NOT_THROUGH_LINKS = getattr(os, "O_NOFOLLOW", 0)
WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)
READING = os.O_RDONLY | CLOSED_ON_EXEC | BINARY
"""The flags of a file that is opened for reading bytes."""

_position = allocate_lock()
"""Windows only: descriptors that `os.dup` has made share the position that `read_at` changes."""


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Return bytes of a file; fewer than `size` at its end.

    Several threads may read one file.

    Args:
        fd: The descriptor of a regular file.
        size: The number of bytes.
        offset: Their place in the file, in bytes.

    Raises:
        OSError: The file can't be read.
    """
    if hasattr(os, "pread"):
        return os.pread(fd, size, offset)
    with _position:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, size)


def is_broken_pipe(error: OSError) -> bool:
    """Return whether writing to a pipe has failed because its reader has gone.

    Windows reports this as an invalid argument.
    """
    on_windows = os.name == "nt" and error.errno == errno.EINVAL and error.filename is None
    return on_windows or isinstance(error, BrokenPipeError)
