"""Allocates ids of 16 bits: the next after the last, wrapping, skipping those in use."""

from __future__ import annotations


class IdAllocator:
    """Ids from 1 to `maximum`; an id comes back into use as late as possible."""

    __slots__ = ("_in_use", "_last", "_maximum")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._last = 0
        self._in_use: set[int] = set()

    @property
    def in_use(self) -> frozenset[int]:
        """Ids that were allocated and not freed."""
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
        """Give an id back."""
        self._in_use.discard(ident)
