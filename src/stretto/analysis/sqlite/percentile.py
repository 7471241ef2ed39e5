"""The aggregates `percentile` and `median` of the trace processor's SQLite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Percentile:
    """`percentile(value, percent)`, interpolated.

    Args:
        name: The name of the function.
        failed: Called with what is wrong with an argument: SQLite drops the text of errors.
    """

    def __init__(self, name: str, failed: Callable[[str], object]) -> None:
        self._name = name
        self._failed = failed
        self._values: list[float] = []
        self._percent: object = None

    def step(self, value: float | str | bytes | None, percent: object = 50.0) -> None:
        """Add a value."""
        if problem := self._problem(value, percent):
            self._failed(problem)
            raise ValueError
        self._percent = percent
        if value is not None:
            self._values.append(float(value))

    def _problem(self, value: object, percent: object) -> str:
        if not isinstance(percent, int | float) or not 0 <= percent <= 100:
            return f"the second argument of {self._name} must be a number from 0 to 100"
        if self._percent not in (None, percent):
            return f"the second argument of {self._name} must be the same for all rows"
        if isinstance(value, str | bytes):
            return f"the values of {self._name} must be numbers"
        if isinstance(value, float) and math.isinf(value):
            return f"the values of {self._name} must not be infinite"
        return ""

    def finalize(self) -> float | None:
        """Return the percentile."""
        if not self._values or not isinstance(self._percent, int | float):
            return None
        self._values.sort()
        place = self._percent / 100 * (len(self._values) - 1)
        low, rest = int(place), place % 1
        high = min(low + 1, len(self._values) - 1)
        return self._values[low] + rest * (self._values[high] - self._values[low])
