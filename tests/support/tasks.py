"""The threads of this process, as the kernel knows them."""

from __future__ import annotations

import os
import time

DEADLINE_S = 30.0


def tasks() -> set[str]:
    """The threads that there are."""
    return set(os.listdir("/proc/self/task"))


def expect_new_tasks(before: set[str], count: int) -> None:
    """So many that weren't there before.

    Those of earlier tests may be on their way out, and the kernel shows one that was joined for a
    moment more.
    """
    end = time.monotonic() + DEADLINE_S
    while len(new := tasks() - before) != count:
        assert time.monotonic() < end, f"{len(new)} new threads, not {count}"
        time.sleep(0.001)
