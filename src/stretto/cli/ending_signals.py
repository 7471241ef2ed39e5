"""SIGTERM and SIGHUP as an orderly end.

    with ending_by_signals():
        …           the signal is raised here, so that what is half done is undone;
                    then the process dies of it, as its parent expects

A signal that is ignored (`nohup`) or handled already stays so.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class _Ended(BaseException):
    """Nobody but us catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Within the block, the signals unwind the stack; behind it, the process has died of them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle any
        return
    ours = [each for each in _SIGNALS if signal.getsignal(each) == signal.SIG_DFL]

    def end(number: int, _frame: object) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)  # a second one shall not disturb the end
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
