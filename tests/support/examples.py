"""The number of hypothesis examples: all, or a tenth with STRETTO_HYPOTHESIS=quick."""

from __future__ import annotations

import os

QUICK = os.environ.get("STRETTO_HYPOTHESIS") == "quick"


def examples(count: int) -> int:
    """Return the number of examples to try, where a complete run tries `count`."""
    return max(10, count // 10) if QUICK else count
