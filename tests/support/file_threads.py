"""Substitutes for threads of file writers: they write immediately, or when a test calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class InlineFileThreads:
    """Writes immediately, on the thread of the service."""

    paused = False

    def check(self) -> None:
        """Return whether a thread is available: always."""

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        work()


class HeldFileThreads(InlineFileThreads):
    """Writes only when a test calls it, as if the files were blocked until then."""

    def __init__(self) -> None:
        self.held: list[Callable[[], object]] = []

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        self.held.append(work)

    def release(self) -> None:
        """Write everything that is waiting."""
        held, self.held = self.held, []
        for work in held:
            work()
