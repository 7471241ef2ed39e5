"""Allocates 16-bit ids in ascending order, with wrap-around, skipping ids in use."""

from __future__ import annotations


class IdAllocator:
    """Allocates ids from 1 to `maximum`; a freed id is reused as late as possible.

    Attributes:
        in_use: The allocated ids.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._last = 0
        self.in_use: set[int] = set()

    def allocate(self) -> int:
        """Return a free id, or 0 if all are in use."""
        if len(self.in_use) >= self._maximum:
            return 0
        while True:
            self._last = self._last % self._maximum + 1
            if self._last not in self.in_use:
                self.in_use.add(self._last)
                return self._last

    def free(self, ident: int) -> None:
        """Free an id."""
        self.in_use.discard(ident)
