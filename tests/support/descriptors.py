"""The open file descriptors of this process."""

from __future__ import annotations

import os
import time

DEADLINE_S = 30.0


def open_descriptors() -> set[tuple[str, str]]:
    """The number of each open descriptor, and what it refers to."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
        except FileNotFoundError:
            pass  # That of the listing, or closed meanwhile by another thread.
    return found


def expect_new_descriptors(before: set[tuple[str, str]], count: int) -> None:
    """Expect as many descriptors that were not open before.

    Counts would also change when objects and threads of earlier tests close theirs. Another thread
    may need a moment to close one.
    """
    end = time.monotonic() + DEADLINE_S
    while len(new := open_descriptors() - before) != count:
        assert time.monotonic() < end, f"{new} are open, {count} were expected"
        time.sleep(0.001)
