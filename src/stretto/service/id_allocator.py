"""Allocates 16-bit ids in ascending order, with wrap-around, skipping ids in use."""

from __future__ import annotations


class IdAllocator:
    """Allocates ids from 1 to `maximum`; a freed id is reused as late as possible."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._last = 0
        self._in_use: set[int] = set()

    @property
    def in_use(self) -> frozenset[int]:
        """The ids in use."""
        return frozenset(self._in_use)

    def allocate(self) -> int:
        """Return a free id, or 0 if all are in use."""
        if len(self._in_use) >= self._maximum:
            return 0
        while True:
            self._last = self._last % self._maximum + 1
            if self._last not in self._in_use:
                self._in_use.add(self._last)
                return self._last

    def free(self, ident: int) -> None:
        """Free an id."""
        self._in_use.discard(ident)
