"""Threads that write the files of sessions.

A write may block on a slow reader of a pipe, on a disk or on a network file system. So the
service's thread writes no files. A thread runs as long as its file has data to write. The
number of threads is bounded, and all of them are stopped during a fork.
"""

from __future__ import annotations

from _thread import allocate_lock, get_native_id
from time import monotonic, sleep

from stretto.base.c_modules import deque
from stretto.base.errors import SessionError
from stretto.ports.helper_thread import start_helper_thread, wait_for_thread_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_THREADS = 64
"""The largest number of threads; so many are blocked only if a user causes it on purpose."""
PAUSE_TIMEOUT_S = 1.0
"""How long a fork waits for a thread that is blocked by a disk."""


class FileThreads:
    """Starts and stops the threads of file writers."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        # The `interrupt` function of each running thread, by a token.
        self._running: dict[object, Callable[[], object]] = {}
        # Native ids of ended threads, which the kernel may still list for a moment.
        self._ended: deque[int] = deque(maxlen=MAX_THREADS)
        self._waiting: list[tuple[Callable[[], object], Callable[[], object]]] = []
        self.paused = False

    @property
    def count(self) -> int:
        """Number of running threads."""
        return len(self._running)

    def check(self) -> None:
        """Raise SessionError if the maximum number of threads is running."""
        if len(self._running) >= MAX_THREADS:
            raise SessionError(
                f"{MAX_THREADS} trace files are being written and take nothing: "
                "write to another file system, or read their pipes."
            )

    def run(self, work: Callable[[], object], interrupt: Callable[[], object]) -> None:
        """Run `work` on a new thread.

        Args:
            work: Returns when its data is written, and soon after `paused` is set.
            interrupt: Interrupts a blocked `work`.

        Raises:
            RuntimeError: The system can't start another thread.
        """
        token = object()
        with self._lock:
            if self.paused:
                self._waiting.append((work, interrupt))
                return
            self._running[token] = interrupt

        def run() -> None:
            try:
                work()
            finally:
                with self._lock:
                    self._ended.append(get_native_id())
                    del self._running[token]

        try:
            start_helper_thread(run)
        except RuntimeError:
            with self._lock:
                del self._running[token]
            raise

    def pause(self) -> None:
        """Stop the threads before a fork, except those that are blocked by a disk."""
        with self._lock:
            self.paused = True
            interrupts = list(self._running.values())
        for interrupt in interrupts:
            interrupt()
        deadline = monotonic() + PAUSE_TIMEOUT_S
        while self._running and monotonic() < deadline:
            sleep(0.0001)
        while self._ended:
            wait_for_thread_exit(self._ended.popleft())

    def resume(self) -> None:
        """Start the threads again after a fork."""
        with self._lock:
            self.paused = False
            waiting, self._waiting = self._waiting, []
        for work, interrupt in waiting:
            try:
                self.run(work, interrupt)
            except RuntimeError:
                # The system can't start a thread now. The work is started after the next fork.
                self._waiting.append((work, interrupt))
