"""The open file descriptors of this process."""

from __future__ import annotations

import os

from tests.support.polling import wait_until


def open_descriptors() -> set[tuple[str, str]]:
    """The number of each open descriptor, and what it refers to."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
        except FileNotFoundError:
            pass  # the descriptor of `listdir` itself, or one that another thread has closed
    return found


def expect_new_descriptors(before: set[tuple[str, str]], count: int) -> None:
    """Expect as many descriptors that were not open before.

    Counts would also change when objects and threads of earlier tests close theirs. Another thread
    may need a moment to close one.
    """
    wait_until(lambda: len(open_descriptors() - before) == count, f"{count} new descriptors")
