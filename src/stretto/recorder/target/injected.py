"""The script that a recorder injects into a running program, to connect the program to it.

The program's main thread runs the script between two of its instructions, in a separate namespace.
Another thread does the work: exceptions that the program's signal handlers raise meanwhile must
reach the program, and not this script. The program's `sys.path` may be anything, so the script
imports only modules that CPython has loaded already or contains. It prints nothing: the recorder
reads the reason of a failure from a FIFO.
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from _thread import allocate_lock, get_native_id, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ATTACHED = "stretto.recorder.target.attached"
TIMEOUT_S = 3.0
POLL_S = 0.0005
MAX_REASON_BYTES = 4096
SUB_INTERPRETERS = (
    "the program runs sub-interpreters, and CPython's remote execution doesn't reach the main one"
)


class ForkGuard:
    """Makes forks wait for the thread that attaches or detaches.

    CPython 3.12 and later warn of a fork with a second thread. A process has one guard, because
    functions passed to `os.register_at_fork` can't be removed.
    """

    def __init__(self) -> None:
        self._working = allocate_lock()
        self._ending: list[int] = []
        os.register_at_fork(before=self._before, after_in_child=self._after_in_child)

    def begin(self) -> bool:
        """Delay forks until `end`; return False if another thread still attaches or detaches."""
        return self._working.acquire(timeout=TIMEOUT_S)

    def end(self) -> None:
        """Let forks continue once the calling thread has ended, which it is about to do."""
        if get_native_id() != os.getpid():
            self._ending.append(get_native_id())
        self._working.release()

    def _before(self) -> None:
        if self._working.acquire(blocking=False):
            self._working.release()
        elif self._working.acquire(timeout=TIMEOUT_S):
            self._working.release()
            # The client's own fork hook has run before this one, or was not installed yet.
            if fork := sys.modules.get("stretto.client.fork"):
                fork.stop_threads()
        while self._ending:
            self._wait_for_end(self._ending.pop())

    def _wait_for_end(self, thread: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while os.path.exists(f"/proc/self/task/{thread}") and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _after_in_child(self) -> None:
        self._working = allocate_lock()
        self._ending.clear()


def attach(folder: str, packages: str) -> None:
    """Connect this process to a recorder.

    Args:
        folder: the recorder's workspace.
        packages: the folder that the recorder has imported `stretto` from.
    """
    try:
        if not _thread._is_main_interpreter():  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001
            _refuse(folder, SUB_INTERPRETERS)
            return
        guard = getattr(sys.modules.get(ATTACHED), "fork_guard", None) or ForkGuard()
        if guard.begin():
            _start_thread(folder, packages, guard)
    except BaseException as error:  # noqa: BLE001  # CPython would print it
        _refuse(folder, _text(error))


def _start_thread(folder: str, packages: str, guard: ForkGuard) -> None:
    try:
        start_new_thread(_attach, (folder, packages, guard))
    except BaseException:
        guard.end()
        raise


def _attach(folder: str, packages: str, guard: ForkGuard) -> None:
    try:
        attached = _load(packages)
        attached.fork_guard = guard
        attached.start(folder)
    except BaseException as error:  # noqa: BLE001  # no error may reach the program
        _refuse(folder, _text(error))
    finally:
        guard.end()


def _load(packages: str) -> Any:
    """Import `attached` from the program's Stretto; from the recorder's if the program has none."""
    try:
        import stretto
    except ImportError:
        sys.path.append(packages)
        try:
            import stretto  # noqa: F401
        finally:
            if sys.path[-1:] == [packages]:
                sys.path.pop()
    from stretto.recorder.target import attached

    return attached


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _refuse(folder: str, reason: str) -> None:
    """Write the reason into the recorder's FIFO, if the recorder still reads it."""
    try:
        fifo = os.open(f"{folder}/refusals", os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(fifo, reason.encode("utf-8", "replace")[:MAX_REASON_BYTES])
        finally:
            os.close(fifo)
    except BaseException:  # noqa: BLE001  # the recorder has ended, or an audit hook refuses
        pass
