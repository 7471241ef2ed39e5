"""The threads of this process, as the kernel knows them."""

from __future__ import annotations

import os

from tests.support.polling import wait_until


def tasks() -> set[str]:
    """The threads that there are."""
    return set(os.listdir("/proc/self/task"))


def expect_new_tasks(before: set[str], count: int) -> None:
    """So many that weren't there before.

    Those of earlier tests may be on their way out, and the kernel shows one that was joined for a
    moment more.
    """
    wait_until(lambda: len(tasks() - before) == count, f"{count} new threads")
