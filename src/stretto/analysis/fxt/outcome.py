"""The result of a conversion."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """Counts of converted and lost data, by a description for the user."""

    made: Counter[str] = field(default_factory=Counter)
    """Counts of what was written."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Counts of data that couldn't be converted, or was damaged."""

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count data that couldn't be converted."""
        if count:
            self.left_out[what] += count
