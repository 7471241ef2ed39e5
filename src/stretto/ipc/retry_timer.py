"""Repeats an attempt with growing pauses, on its own thread.

    start()      attempts now; then after 100 ms, 200 ms, 400 ms ... 2 s, 2 s ...
    success      the thread ends
    start()      continues with the current pause
    reset()      the next pause is 100 ms again

The thread is native, and sleeps without holding the GIL. Call `reset` only after the success has
lasted: otherwise a connection that is closed immediately would be retried without a pause.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_MS = 100
LONGEST_MS = 2000


class RetryTimer:
    """Calls `attempt` until it returns True.

    Args:
        attempt: Must return quickly, and must not raise.
    """

    def __init__(self, attempt: Callable[[], bool]) -> None:
        self._attempt = attempt
        self._fd = -1
        self._pause_ms = 0
        self._lock = allocate_lock()  # The timer's thread never takes the lock.
        self._suspended = self._wanted = False
        self._open()

    def start(self) -> None:
        """Start the attempts, unless they are running. Must not be called by the attempt."""
        with self._lock:
            if not self._wanted and self._fd >= 0:
                self._wanted = True
                self._set()
                self._run()

    def reset(self) -> None:
        """Reset the next pause to the first one."""
        self._pause_ms = FIRST_MS

    def suspend(self) -> None:
        """Stop the thread until `resume`, for a fork."""
        with self._lock:
            self._suspended = True
        self._thread.stop()

    def resume(self) -> None:
        """Continue after `suspend`."""
        with self._lock:
            self._suspended = False
            if self._wanted and self._fd >= 0:
                self._run()

    def close(self) -> None:
        """Stop the attempts and free the timer."""
        self.suspend()
        self.abandon()

    def abandon(self) -> None:
        """In the child of a fork: close this process's copy of the timer."""
        fd, self._fd = self._fd, -1
        try:
            os.close(fd)
        except OSError:
            pass  # The program has closed the descriptor.

    def _open(self) -> None:
        self._fd = _native.timer_fd()
        self._thread = _native.IpcThread(self._fd, None, self._on_time)

    def _run(self) -> None:
        if not self._suspended:
            self._thread.stop()  # `stop` joins the thread if it has ended.
            self._thread.start()

    def _set(self) -> bool:
        """Set the timer; return False if it was recreated and the thread doesn't watch it yet."""
        pause_ms = self._pause_ms
        self._pause_ms = min(max(FIRST_MS, 2 * pause_ms), LONGEST_MS)
        try:
            _native.set_timer_fd(self._fd, pause_ms)
        except OSError:
            # The program has closed all descriptors. Destroy the old thread first: later it would
            # close descriptor numbers that the new timer reuses.
            del self._thread
            self._open()
            _native.set_timer_fd(self._fd, pause_ms)
            return False
        return True

    def _on_time(self) -> bool:
        # The flag is cleared before the attempt: the new connection may break at once and call
        # `start`.
        self._wanted = False
        if self._attempt():
            return False
        self._wanted = True
        if self._set():
            return True
        if not self._suspended:
            self._thread.start()
        return False
