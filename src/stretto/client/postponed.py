"""Work that is postponed until this process records its first event, or has run for 20 ms.

The child of a fork connects to its recorder in this way, because a connection takes milliseconds,
and many children execute another program or end at once.
"""

from __future__ import annotations

# Importing `threading` would take a millisecond.
from _thread import RLock

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_MS = 20

_lock = RLock()
_work: list[Callable[[], object]] = []
"""Has one entry until the work is done."""
_underway: list[Callable[[], object]] = []
"""Has one entry while the work is being done."""


def postpone(work: Callable[[], object]) -> None:
    """In the child of a fork: call `work` before the first event or use of a session.

    It is called after LONGEST_MS at the latest. The lock is replaced, because another thread of the
    parent may have held it at the fork.
    """
    global _lock
    _lock = RLock()
    _work[:] = [work]
    _underway.clear()
    _native.call_after(LONGEST_MS, run)


def is_waiting() -> bool:
    """Whether postponed work isn't done yet."""
    return bool(_work)


def run() -> None:
    """Do the postponed work now. Other threads that call this function wait until it is done."""
    if _work:
        with _lock:
            _do()


def _do() -> None:
    if _work and not _underway:
        _underway[:] = _work
        try:
            _native.call_untraced(_work[0])
        finally:
            _work.clear()


def suspend() -> None:
    """End the thread that waits for the time-out, before this process forks."""
    _native.cancel_call()


def resume() -> None:
    """Wait for the time-out again after a fork, in the parent."""
    if _work:
        _native.call_after(LONGEST_MS, run)


def cancel() -> bool:
    """Drop the postponed work, at the end of the process; return whether there was any."""
    _native.drop_call()
    was_waiting = bool(_work)
    _work.clear()
    return was_waiting
