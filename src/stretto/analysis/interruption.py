"""Lets Ctrl-C end a query: an engine's loop runs no handlers of signals. Gives threads turns."""

from __future__ import annotations

from threading import Event, RLock, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

_PAUSE = 0.05
"""Seconds between two looks for signals: only Linux and macOS wake a waiting thread for one."""


class _Call(Thread, Generic[Result]):
    def __init__(self, work: Callable[[], Result]) -> None:
        super().__init__(name="stretto-query", daemon=True)
        self._work = work
        self._error: BaseException | None = None
        self.begin = Event()  # An exception inside `start` must not leave a query that runs.
        self.ended = Event()  # A `join` that an exception ends would take the thread for ended.

    def run(self) -> None:
        self.begin.wait()
        try:
            self._returned = self._work()
        except BaseException as error:  # noqa: BLE001
            self._error = error
        finally:
            self.ended.set()

    def result(self) -> Result:
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # Its traceback has this frame: no reference cycle.
        return self._returned


def interruptible(work: Callable[[], Result], interrupt: Callable[[], object]) -> Result:
    """Return the result of a function, which an exception of a signal's handler ends.

    In the main thread, the only one with handlers of signals, the function runs in another thread.

    Args:
        work: The function.
        interrupt: Makes the function end soon, with any exception. It may be called several times.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed. Other handlers' exceptions are raised as well.
    """
    if current_thread() is not main_thread():
        return work()
    call = _Call(work)
    call.start()
    try:
        call.begin.set()
        while not call.ended.wait(_PAUSE):
            pass
    except BaseException:
        while not call.ended.is_set():
            interrupt()  # Before the engine's loop begins, it has no effect.
            call.ended.wait(_PAUSE)
        raise
    return call.result()


class Turns:
    """Lets threads use an engine one after the other: a connection can't answer two queries.

    Args:
        interrupt: Ends what the engine does, as for `interruptible`.

    Attributes:
        lock: Held by the thread that called `run`, not by the one that executes the query: so
            Ctrl-C ends the wait of the main thread, and never another thread's query.
    """

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self._interrupt = interrupt
        self.lock = RLock()

    def run(self, work: Callable[[], Result]) -> Result:
        """Return the result of a function, which is called when no other thread has its turn.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed. Other handlers' exceptions are raised as well.
        """
        while not self.lock.acquire(timeout=_PAUSE):
            pass  # A signal that comes just before the wait would not end it.
        try:
            return interruptible(work, self._interrupt)
        finally:
            self.lock.release()
