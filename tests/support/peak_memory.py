"""Measures the peak of Python's memory during a block."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Peak:
    """The measured peak in bytes, set at the end of the block."""

    bytes = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the allocations of a block with `tracemalloc`."""
    peak = Peak()
    gc.collect()
    tracemalloc.start()
    try:
        yield peak
        peak.bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
