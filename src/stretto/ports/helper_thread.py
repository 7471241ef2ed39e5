"""Helper threads that don't interfere with the traced program.

They are started without `threading`, so they are not in the program's list of threads. They
block all signals, because signals must interrupt the program's own threads. Their name in the
kernel tells profilers whose they are.
"""

from __future__ import annotations

# Importing `signal` would take two milliseconds, most of them to make its enumerations.
import _signal as signal  # type: ignore[import-not-found]
import os
from _thread import start_new_thread
from time import monotonic, sleep

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

END_TIMEOUT_S = 5.0


def start_helper_thread(function: Callable[[], object]) -> int:
    """Run `function` on a new thread; return the thread's identifier.

    Raises:
        RuntimeError: The system can't start another thread.
    """
    thread: int = _native.call_untraced(_start_without_signals, function)
    return thread


def _start_without_signals(function: Callable[[], object]) -> int:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        return start_new_thread(_native.call_on_own_thread, (function,))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_for_thread_exit(native_id: int) -> None:
    """Wait until the kernel has removed an ended thread.

    CPython counts the threads of the process at a fork, and warns if there is more than one.
    """
    deadline = monotonic() + END_TIMEOUT_S
    while os.path.exists(f"/proc/self/task/{native_id}") and monotonic() < deadline:
        sleep(0.0001)
