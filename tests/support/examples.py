"""How many examples hypothesis tries: all of them, or a tenth with STRETTO_HYPOTHESIS=quick."""

from __future__ import annotations

import os

QUICK = os.environ.get("STRETTO_HYPOTHESIS") == "quick"


def examples(count: int) -> int:
    """Returns the number of examples to try where a whole run tries `count`."""
    return max(10, count // 10) if QUICK else count
