"""Waits for changes that send no notification: of files, other processes and threads."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 60.0
"""Time limit after which a test has hung, in seconds."""


def wait_until(condition: Callable[[], object], what: str = "the condition to hold") -> None:
    """Wait until the condition returns a true value."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what} after {LIMIT_S:.0f} s"
        time.sleep(0.002)  # sleep: the polling interval of all tests
