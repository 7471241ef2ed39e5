"""Substitutes for the service's file writer threads; the substitutes start no thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class InlineFileThreads:
    """A substitute for file writer threads that writes at once, on the service's thread."""

    paused = False

    def check(self) -> None:
        """Do nothing: this substitute has no thread that can fail."""

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        work()


class HeldFileThreads(InlineFileThreads):
    """A substitute that simulates blocked files: it writes only when a test calls `release`."""

    def __init__(self) -> None:
        self.held: list[Callable[[], object]] = []

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        self.held.append(work)

    def release(self) -> None:
        """Do all the work that `run` has stored."""
        held, self.held = self.held, []
        for work in held:
            work()
