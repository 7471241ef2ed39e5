"""A helper thread that runs a task runner. It is stopped before a fork and restarted afterwards."""

from __future__ import annotations

from _thread import allocate_lock, get_ident, get_native_id

from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.client import fork
from stretto.client.safe_call import call_safely
from stretto.ports.helper_thread import start_helper_thread, wait_for_thread_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

RESTART_PERIOD_S = 0.1


class _Result:
    """The result or exception of a call on the thread."""

    __slots__ = ("done", "error", "value")

    def __init__(self) -> None:
        self.done = allocate_lock()
        self.done.acquire()
        self.value: object = None
        self.error: BaseException | None = None

    def run(self, function: Callable[[], object]) -> None:
        try:
            self.value = function()
        except BaseException as error:  # noqa: BLE001  # raised again by the caller
            self.error = error
        finally:
            self.done.release()


class RunnerThread:
    """A task runner and the thread that runs it.

    Attributes:
        runner: The task runner; any thread may post to it.
    """

    def __init__(self) -> None:
        self.runner = SelectorTaskRunner()
        self._start_lock = allocate_lock()
        self._thread: int | None = None
        self._native_id = 0
        self._stopped = allocate_lock()
        fork.before.append(self.stop)
        fork.after_in_parent.append(self.start)
        self.start()

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` on the thread and return what it returns, or raise what it raises."""
        if get_ident() == self._thread:
            return function()
        self.start()
        result = _Result()
        self.runner.post(lambda: result.run(function))
        # A fork may stop the runner's thread, and this thread may be the only one to restart it.
        while not result.done.acquire(timeout=RESTART_PERIOD_S):
            self.start()
        if result.error is not None:
            raise result.error
        return result.value  # type: ignore[return-value]  # what function returned

    def start(self) -> None:
        """Start the thread. Idempotent."""
        with self._start_lock:
            if self._thread is None:
                self._stopped.acquire()
                self._thread = start_helper_thread(self._run)

    def _run(self) -> None:
        self._native_id = get_native_id()
        try:
            while not self._run_once():
                pass
        finally:
            self._stopped.release()

    def _run_once(self) -> bool:
        """Run until `quit`; return False if a task has raised an exception, which is reported."""
        quits: list[bool] = []

        def run() -> None:
            self.runner.run()
            quits.append(True)

        call_safely(run)
        return bool(quits)

    def stop(self) -> None:
        """End the thread before a fork; tasks stay queued until it is started again."""
        if self._thread is None or get_ident() == self._thread:
            return
        self.runner.quit()
        with self._stopped:
            self._thread = None
        wait_for_thread_exit(self._native_id)

    def abandon(self) -> None:
        """Close the runner in the child of a fork: its thread runs only in the parent."""
        fork.before.remove(self.stop)
        fork.after_in_parent.remove(self.start)
        self.runner.close()
