"""Tries something again and again, ever more slowly, on a thread of its own.

    start()      now; then after 100 ms, 200 ms, 400 ms ... 2 s, 2 s ...  until it succeeds
    succeeded    no thread is left
    start()      goes on with the pauses where it was
    reset()      what was tried has proved to work: the next pause is 100 ms

The thread is native, and sleeps without the interpreter. Not every success lasts: who is let in
and thrown out at once must not `reset`, or would try without a pause.
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
        attempt: quick, and raises nothing.
    """

    __slots__ = ("_attempt", "_fd", "_lock", "_pause_ms", "_suspended", "_thread", "_wanted")

    def __init__(self, attempt: Callable[[], bool]) -> None:
        self._attempt = attempt
        self._fd = -1
        self._pause_ms = 0
        self._lock = allocate_lock()  # never taken by the timer's own thread
        self._suspended = self._wanted = False
        self._open()

    def start(self) -> None:
        """Begin to try, unless that goes on already. Not for the attempt itself."""
        with self._lock:
            if not self._wanted and self._fd >= 0:
                self._wanted = True
                self._set()
                self._run()

    def reset(self) -> None:
        """Begin the pauses anew."""
        self._pause_ms = FIRST_MS

    def suspend(self) -> None:
        """Have no thread until `resume`: for a fork."""
        with self._lock:
            self._suspended = True
        self._thread.stop()

    def resume(self) -> None:
        """Go on after `suspend`."""
        with self._lock:
            self._suspended = False
            if self._wanted and self._fd >= 0:
                self._run()

    def close(self) -> None:
        """Try no more."""
        self.suspend()
        self.abandon()

    def abandon(self) -> None:
        """In the child of a fork: the thread was the parent's, and nothing is tried."""
        fd, self._fd = self._fd, -1
        try:
            os.close(fd)
        except OSError:
            pass  # the program has closed it, or we have

    def _open(self) -> None:
        self._fd = _native.timer_fd()
        self._thread = _native.IpcThread(self._fd, None, self._on_time)

    def _run(self) -> None:
        if not self._suspended:
            self._thread.stop()  # joins one that has succeeded
            self._thread.start()

    def _set(self) -> bool:
        """Set the timer; False if that took a new one, which its thread doesn't watch yet."""
        pause_ms = self._pause_ms
        self._pause_ms = min(max(FIRST_MS, 2 * pause_ms), LONGEST_MS)
        try:
            _native.set_timer_fd(self._fd, pause_ms)
        except OSError:
            # The program has closed every descriptor that it didn't know. The old thread must
            # not close numbers that are the new one's.
            del self._thread
            self._open()
            _native.set_timer_fd(self._fd, pause_ms)
            return False
        return True

    def _on_time(self) -> bool:
        # Before the attempt: what it made may break, and want the next `start`, meanwhile.
        self._wanted = False
        if self._attempt():
            return False
        self._wanted = True
        if self._set():
            return True
        if not self._suspended:
            self._thread.start()
        return False
