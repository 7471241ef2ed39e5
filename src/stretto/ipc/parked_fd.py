"""The one place of a connection for a descriptor that arrived and nobody took yet.

As in Perfetto the last one counts: a handler that expects a descriptor takes
it, and one that a peer sends for nothing is closed when the next one comes.
"""

from __future__ import annotations

import os


class ParkedFd:
    """Owns at most one descriptor."""

    __slots__ = ("_fd",)

    def __init__(self) -> None:
        self._fd = -1

    def park(self, fd: int) -> None:
        """Own `fd` (-1: none came, nothing changes) in place of an earlier one."""
        if fd >= 0:
            self.close()
            self._fd = fd

    def take(self) -> int:
        """The descriptor, the caller's from now on; -1 if there is none."""
        fd, self._fd = self._fd, -1
        return fd

    def close(self) -> None:
        """Close what nobody took."""
        fd = self.take()
        if fd >= 0:
            os.close(fd)
