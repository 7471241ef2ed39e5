"""Threads of our own that the traced program doesn't notice.

They are none of `threading`'s: the program's own list of threads stays as it was. All
signals are blocked in them: a signal has to interrupt the program.
"""

from __future__ import annotations

import os
import signal
from _thread import start_new_thread
from time import monotonic, sleep

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

END_TIMEOUT_S = 1.0


def start_helper_thread(function: Callable[[], object]) -> int:
    """Run `function` on a new thread; returns the thread's identifier.

    Raises:
        RuntimeError: The system gives no thread.
    """
    thread: int = _native.own_work(_start_without_signals, function)
    return thread


def _start_without_signals(function: Callable[[], object]) -> int:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        return start_new_thread(_native.own_work, (function,))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_for_thread_exit(native_id: int) -> None:
    """CPython counts the system's threads at a fork: one that is about to end still counts."""
    deadline = monotonic() + END_TIMEOUT_S
    while os.path.exists(f"/proc/self/task/{native_id}") and monotonic() < deadline:
        sleep(0.0001)
