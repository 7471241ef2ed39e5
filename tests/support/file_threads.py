"""Substitutes for the service's file writer threads, which write without a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class InlineFileThreads:
    """A substitute that writes immediately, on the thread of the service."""

    paused = False

    def check(self) -> None:
        """Do nothing: this substitute has no thread that can fail."""

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        work()


class HeldFileThreads(InlineFileThreads):
    """A substitute that writes only when a test calls `release`, as if files were blocked."""

    def __init__(self) -> None:
        self.held: list[Callable[[], object]] = []

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        self.held.append(work)

    def release(self) -> None:
        """Write all data that was held back."""
        held, self.held = self.held, []
        for work in held:
            work()
