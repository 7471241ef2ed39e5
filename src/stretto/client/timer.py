"""A thread that calls a function in regular intervals; it ends before a fork, and starts again."""

from __future__ import annotations

from _thread import allocate_lock, get_ident, get_native_id

from stretto.client import fork
from stretto.ports.helper_thread import (
    END_TIMEOUT_S,
    start_helper_thread,
    wait_for_thread_exit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

START_TIMEOUT_S = 1.0


class _Run:
    """One life of the thread: until it is ended, by `stop` or by a fork."""

    def __init__(self, function: Callable[[], object], wait_s: float, interval_s: float) -> None:
        self._function = function
        self._wait_s = wait_s
        self._interval_s = interval_s
        self._native_id = 0
        self._end = allocate_lock()  # Held until the thread has to end.
        self._ended = allocate_lock()  # Held until it has called the function for the last time.
        self._end.acquire()
        self._ended.acquire()
        self.ident = start_helper_thread(self._run)

    def _run(self) -> None:
        self._native_id = get_native_id()
        try:
            while not self._end.acquire(timeout=self._wait_s):
                self._wait_s = self._interval_s
                self._function()
        finally:
            self._ended.release()

    def end(self) -> None:
        """End the thread, and wait for that."""
        self._end.release()
        # A thread that had no memory for its first call never tells that it has ended.
        timeout = END_TIMEOUT_S if self._native_id else START_TIMEOUT_S
        if self.ident != get_ident() and self._ended.acquire(timeout=timeout):
            wait_for_thread_exit(self._native_id)


class Timer:
    """Calls a function in regular intervals, on a thread of its own.

    Args:
        function: the function to call; it raises nothing.
        phase_s: time until the first call, in s; 0 for one interval.
        interval_s: time between two calls, in s.
    """

    def __init__(self, function: Callable[[], object], phase_s: float, interval_s: float) -> None:
        self._function = function
        self._phase_s = phase_s or interval_s
        self._interval_s = interval_s
        self._run: _Run | None = None

    def start(self) -> None:
        """Start to wait for the first call."""
        fork.before.append(self._end_run)
        fork.after_in_parent.append(self._start_again)
        self._start_run()

    def stop(self) -> None:
        """Wait until a call that is under way has ended; then no further call is made."""
        self.forget()
        self._end_run()

    def forget(self) -> None:
        """Leave the hooks of forks; in the child of a fork the thread doesn't exist."""
        for hooks, hook in (
            (fork.before, self._end_run),
            (fork.after_in_parent, self._start_again),
        ):
            if hook in hooks:
                hooks.remove(hook)

    def _start_run(self) -> None:
        self._run = _Run(self._function, self._phase_s, self._interval_s)
        self._phase_s = self._interval_s

    def _start_again(self) -> None:
        """Start again after a fork, unless there is no memory for a thread."""
        try:
            self._start_run()
        except (RuntimeError, MemoryError):
            self._run = None

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.end()
