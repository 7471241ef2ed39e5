"""Lists the threads of this process from /proc."""

from __future__ import annotations

import os

from tests.support.polling import wait_until


def tasks() -> set[str]:
    """Return the kernel's ids of the threads of this process."""
    return set(os.listdir("/proc/self/task"))


def expect_new_tasks(before: set[str], count: int) -> None:
    """Wait until this number of new threads exists.

    Waiting is necessary because the kernel lists a thread for a moment after it was joined.
    """
    wait_until(lambda: len(tasks() - before) == count, f"{count} new threads")
