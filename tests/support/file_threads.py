"""Threads of file writers that a test runs: at once, or when it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class InlineFileThreads:
    """Writes at once, on the service's thread."""

    paused = False

    def check(self) -> None:
        """There are always enough."""

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        work()


class HeldFileThreads(InlineFileThreads):
    """Writes nothing until it is told to: files that take nothing until then."""

    def __init__(self) -> None:
        self.held: list[Callable[[], object]] = []

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        self.held.append(work)

    def release(self) -> None:
        """Have everything written that was to be written."""
        held, self.held = self.held, []
        for work in held:
            work()
