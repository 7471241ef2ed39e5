"""Descriptors whose file is checked before use, because the program may have closed them.

Daemons close all descriptors, and a file that is opened later may get the number of one of
Stretto's descriptors: that file must not be read, written or closed here. So a descriptor is stored
with its inode. (`native/core/own_fd.h` is the native implementation.)
"""

from __future__ import annotations

import os


class OwnFd:
    """A descriptor number, with the identity of its file at the time of construction.

    Args:
        fd: The descriptor; not owned. If it isn't open, `is_ours` is always False.
    """

    __slots__ = ("_identity", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._identity = _identity(fd)

    @property
    def is_ours(self) -> bool:
        """Whether the descriptor number still refers to our file."""
        return self._identity is not None and _identity(self.fd) == self._identity

    def close(self) -> None:
        """Close the descriptor, unless the program has closed it."""
        if self.is_ours:
            os.close(self.fd)


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
