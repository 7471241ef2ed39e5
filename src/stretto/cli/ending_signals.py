"""Cleanup before the process dies of SIGTERM or SIGHUP.

    with ending_by_signals():
        …           a signal raises an exception here, so that cleanup runs;
                    then the process dies of the signal, as its parent expects

A signal that is ignored (`nohup`) or has a handler is left unchanged.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Windows has no SIGHUP."""


class _Ended(BaseException):
    """Raised by the signal handlers, and caught only by this module."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Turn the signals into an exception inside the block; after the block, die of the signal."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread can set signal handlers.
        return
    ours = [each for each in _SIGNALS if signal.getsignal(each) == signal.SIG_DFL]

    def end(number: int, _frame: object) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)  # A second signal must not interrupt the cleanup.
        raise _Ended(number)

    try:
        for each in ours:
            signal.signal(each, end)
        yield
    except _Ended as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)
