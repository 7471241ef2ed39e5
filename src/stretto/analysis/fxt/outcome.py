"""What became of a trace that was converted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """Counts, by words for a reader."""

    made: Counter[str] = field(default_factory=Counter)
    """What was written."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What couldn't be carried over, and what was damaged."""

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count what couldn't be carried over."""
        if count:
            self.left_out[what] += count
