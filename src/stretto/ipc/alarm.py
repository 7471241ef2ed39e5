"""A timer that calls a function on its own thread, which runs only while the timer is set.

    set(ms)     call in `ms` milliseconds; a second call replaces the time
    on_time()   returns the ms until the next call, or None to end the thread

The thread is native, and sleeps without holding the GIL.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, get_ident

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_MS = 1 << 30


class Alarm:
    """A timer with a thread.

    Args:
        on_time: Called when the time is up. It must not raise; it may call every method of the
            alarm.
    """

    def __init__(self, on_time: Callable[[], float | None]) -> None:
        self._on_time = on_time
        self._fd = -1
        self._thread: _native.IpcThread | None = None
        self._own_ident = 0
        self._is_set = self._suspended = False
        self._lock = allocate_lock()  # The lock is never held while the thread is joined.

    def set(self, ms: float) -> None:
        """Call `on_time` in `ms` milliseconds."""
        if get_ident() == self._own_ident:
            self._arm(ms)
            return
        self._join()
        with self._lock:
            self._arm(ms)
            if self._thread is not None and not self._suspended:
                self._thread.start()

    def suspend(self) -> None:
        """Stop the thread until `resume`, for a fork."""
        self._suspended = True
        self._join()

    def resume(self) -> None:
        """Continue after `suspend`."""
        with self._lock:
            self._suspended = False
            if self._thread is not None and self._is_set:
                self._thread.start()

    def close(self) -> None:
        """Cancel the timer and free its descriptor."""
        self.suspend()
        self.abandon()

    def abandon(self) -> None:
        """In the child of a fork: close this process's copy of the timer."""
        self._is_set = False
        if get_ident() != self._own_ident:
            self._thread = None
        fd, self._fd = self._fd, -1
        try:
            os.close(fd)
        except OSError:
            pass  # The timer was never set, or the program has closed it.

    def _join(self) -> None:
        if self._thread is not None and get_ident() != self._own_ident:
            self._thread.stop()

    def _arm(self, ms: float) -> None:
        self._is_set = True
        whole_ms = min(max(0, round(ms)), LONGEST_MS)
        try:
            _native.set_timer_fd(self._fd, whole_ms)
        except OSError:  # The timer isn't open yet, or the program has closed it.
            # The old thread must be destroyed before its descriptor numbers are reused.
            self._thread = None
            self._fd = _native.timer_fd()
            self._thread = _native.IpcThread(self._fd, None, self._ring)
            _native.set_timer_fd(self._fd, whole_ms)

    def _ring(self) -> bool:
        self._own_ident = get_ident()
        self._is_set = False
        thread = self._thread
        try:
            ms = self._on_time()
            if ms is not None and self._fd >= 0:
                self._arm(ms)
            if self._thread is not None and self._thread is not thread and not self._suspended:
                self._thread.start()  # The timer was opened again.
            return self._is_set and not self._suspended and self._thread is thread
        finally:
            self._own_ident = 0
