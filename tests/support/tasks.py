"""The threads of this process in the kernel."""

from __future__ import annotations

import os

from tests.support.polling import wait_until


def tasks() -> set[str]:
    """Return the ids of the threads."""
    return set(os.listdir("/proc/self/task"))


def expect_new_tasks(before: set[str], count: int) -> None:
    """Wait until this number of new threads exists.

    Threads of earlier tests may still be ending, and the kernel shows a joined one for a
    moment more.
    """
    wait_until(lambda: len(tasks() - before) == count, f"{count} new threads")
