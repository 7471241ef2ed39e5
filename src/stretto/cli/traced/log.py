"""Messages of the daemon on standard error: its addresses, and errors.

Peers can cause messages, which could fill a disk. So the number of lines in each period is limited,
and further lines are only counted.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LINES_PER_PERIOD = 20
PERIOD_S = 10.0


def _print(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # Standard error is closed, so the message is lost.


class Log:
    """Writes messages, up to a maximum rate.

    Args:
        write: writes one line.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        write: Callable[[str], object] = _print,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._clock = clock
        self._begin = clock()
        self._lines = 0

    def write(self, text: str) -> None:
        """Write a line. If this period has too many lines, only count the line."""
        now = self._clock()
        if now - self._begin >= PERIOD_S:
            suppressed = self._lines - LINES_PER_PERIOD
            self._begin, self._lines = now, 0
            if suppressed > 0:
                self._write(f"stretto traced: {suppressed} more messages were left out")
        self._lines += 1
        if self._lines <= LINES_PER_PERIOD:
            self._write(f"stretto traced: {text}")
