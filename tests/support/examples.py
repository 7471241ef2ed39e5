"""Sets the number of hypothesis examples. STRETTO_HYPOTHESIS=quick divides it by ten."""

from __future__ import annotations

import os

QUICK = os.environ.get("STRETTO_HYPOTHESIS") == "quick"


def examples(count: int) -> int:
    """Return `count`, or a tenth of it (at least 10) if STRETTO_HYPOTHESIS is `quick`."""
    return max(10, count // 10) if QUICK else count
