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

is_waiting = _native.is_postponed
"""Whether postponed work isn't done yet."""

_lock = RLock()
_work: list[Callable[[], object]] = []
"""Has one entry, the work of this process or of its next child."""
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
    _native.set_postponed(True)
    _native.call_after(LONGEST_MS, run)


def prepare(work: Callable[[], object]) -> bool:
    """Before a fork: set what the child postpones, if the native part postpones it there.

    Returns:
        False if the child must call `postpone`: this process has postponed work itself, or another
        thread has just done it, and holds the lock.
    """
    if is_waiting() or not _lock.acquire(blocking=False):
        return False
    _work[:] = [work]
    _underway.clear()
    _lock.release()
    return True


def plan_child(
    slot: int | None, hooks: tuple[Callable[[], object], ...], otherwise: Callable[[], object]
) -> None:
    """Plan what the child of the next fork does first: see `_native.plan_child`."""
    _native.plan_child(slot, LONGEST_MS, run, hooks, otherwise)


def run() -> None:
    """Do the postponed work now. Other threads that call this function wait until it is done."""
    if is_waiting():
        with _lock:
            _do()


def _do() -> None:
    if is_waiting() and not _underway:
        _underway[:] = _work
        try:
            _native.call_untraced(_work[0])
        finally:
            _native.set_postponed(False)


def suspend() -> None:
    """End the thread that waits for the time-out, before this process forks."""
    _native.cancel_call()


def resume() -> None:
    """Wait for the time-out again after a fork, in the parent."""
    if is_waiting():
        _native.call_after(LONGEST_MS, run)


def cancel() -> bool:
    """Drop the postponed work, at the end of the process; return whether there was any."""
    _native.drop_call()
    was_waiting = is_waiting()
    _native.set_postponed(False)
    return was_waiting
