"""Sets the number of hypothesis examples: STRETTO_HYPOTHESIS=quick runs only a tenth."""

from __future__ import annotations

import os

QUICK = os.environ.get("STRETTO_HYPOTHESIS") == "quick"


def examples(count: int) -> int:
    """Return the number of examples to try: `count` in a complete run."""
    return max(10, count // 10) if QUICK else count
