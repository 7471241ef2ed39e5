"""Repeats an attempt with growing pauses, on its own thread.

    start()      attempts now; then after 100 ms, 200 ms, 400 ms ... 2 s, 2 s ...
    success      the thread ends
    start()      continues with the current pause
    reset()      the next pause is 100 ms again

The thread is native, and sleeps without holding the GIL. Call `reset` only after the success has
lasted for some time: otherwise a connection that is closed immediately would be retried without a
pause.
"""

from __future__ import annotations

from stretto.ipc.alarm import Alarm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_MS = 100
LONGEST_MS = 2000


class RetryTimer(Alarm):
    """Calls `attempt` until it returns True.

    Args:
        attempt: Must return quickly, and must not raise.
    """

    def __init__(self, attempt: Callable[[], bool]) -> None:
        super().__init__(self._try)
        self._attempt = attempt
        self._pause_ms = 0
        self._wanted = self._closed = False

    def start(self) -> None:
        """Start the attempts, unless they are running."""
        with self._lock:
            if self._wanted or self._closed:
                return
            self._wanted = True
        self.set(self._next_pause())

    def reset(self) -> None:
        """Reset the next pause to the first one."""
        self._pause_ms = FIRST_MS

    def abandon(self) -> None:
        self._closed = True
        super().abandon()

    def _next_pause(self) -> int:
        pause_ms = self._pause_ms
        self._pause_ms = min(max(FIRST_MS, 2 * pause_ms), LONGEST_MS)
        return pause_ms

    def _try(self) -> int | None:
        # Clear `_wanted` before the attempt: the new connection may break at once and call `start`.
        self._wanted = False
        if self._attempt():
            return None
        self._wanted = True
        return self._next_pause()
