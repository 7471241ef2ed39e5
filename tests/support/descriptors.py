"""Helpers for tests that check the open file descriptors of this process."""

from __future__ import annotations

import os

from tests.support.polling import wait_until


def open_descriptors() -> set[tuple[str, str]]:
    """Return the number and the link target in /proc of each open descriptor."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
        except FileNotFoundError:
            pass  # the descriptor was closed by `listdir` or another thread
    return found


def expect_new_descriptors(before: set[tuple[str, str]], count: int) -> None:
    """Wait until exactly `count` descriptors are open that are not in `before`.

    Totals can't be compared, because objects and threads of earlier tests may close descriptors.
    """
    wait_until(lambda: len(open_descriptors() - before) == count, f"{count} new descriptors")
