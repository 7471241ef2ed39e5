"""Descriptors that are known again after the program may have closed them.

Daemons close every number that they don't know, and what they open next may get one of ours:
such a file must not be read, written or closed by us. So a descriptor is remembered with the
inode behind it. (`native/core/own_fd.h` does the same on the native side.)
"""

from __future__ import annotations

import os


class OwnFd:
    """A descriptor number, and what lay behind it when this object was made.

    Args:
        fd: The descriptor; it isn't owned. One that isn't open is never ours.
    """

    __slots__ = ("_identity", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._identity = _identity(fd)

    @property
    def is_ours(self) -> bool:
        """Still the same file."""
        return self._identity is not None and _identity(self.fd) == self._identity

    def close(self) -> None:
        """Close it, unless the program did so."""
        if self.is_ours:
            os.close(self.fd)


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
