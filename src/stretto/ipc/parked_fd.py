"""Keeps the last received descriptor of a connection until a handler takes it.

As in Perfetto, only the last one is kept: an unexpected descriptor is closed when the next one
arrives.
"""

from __future__ import annotations

from stretto.base.own_fd import OwnFd


class ParkedFd:
    """Owns at most one descriptor. The base class of both ends of a connection."""

    def __init__(self) -> None:
        self._parked: OwnFd | None = None

    def park_fd(self, fd: int) -> None:
        """Store `fd`, and close a previous one. No effect for -1."""
        if fd >= 0:
            self.close_parked_fd()
            self._parked = OwnFd(fd)

    def take_fd(self) -> int:
        """Return the descriptor, which the caller then owns; -1 if there is none."""
        parked, self._parked = self._parked, None
        return parked.fd if parked is not None and parked.is_ours else -1

    def close_parked_fd(self) -> None:
        """Close the descriptor, if there is one."""
        parked, self._parked = self._parked, None
        if parked is not None:
            parked.close()
