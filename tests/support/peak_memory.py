"""The most memory that Python holds at once while something runs."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Peak:
    """What was measured, when it is over."""

    bytes = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Counts what is allocated in a block, by `tracemalloc`."""
    peak = Peak()
    gc.collect()
    tracemalloc.start()
    try:
        yield peak
        peak.bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
