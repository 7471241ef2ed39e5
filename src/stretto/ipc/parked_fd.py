"""The one place of a connection for a descriptor that arrived and nobody took yet.

As in Perfetto the last one counts: a handler that expects a descriptor takes
it, and one that a peer sends for nothing is closed when the next one comes.
"""

from __future__ import annotations

from stretto.base.own_fd import OwnFd


class ParkedFd:
    """Owns at most one descriptor."""

    __slots__ = ("_parked",)

    def __init__(self) -> None:
        self._parked: OwnFd | None = None

    def park(self, fd: int) -> None:
        """Own `fd` (-1: none came, nothing changes) in place of an earlier one."""
        if fd >= 0:
            self.close()
            self._parked = OwnFd(fd)

    def take(self) -> int:
        """The descriptor, the caller's from now on; -1 if there is none."""
        parked, self._parked = self._parked, None
        return parked.fd if parked is not None and parked.is_ours else -1

    def close(self) -> None:
        """Close what nobody took."""
        parked, self._parked = self._parked, None
        if parked is not None:
            parked.close()
