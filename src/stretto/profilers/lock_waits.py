"""`python.waits`: each wait for a lock of `threading` is a slice on the thread that waits.

The slices have the place where the lock was made, and the thread that held it. Those of a
condition, an event, a semaphore, a barrier or a queue are waits for a notification. Waits below
20 us are only counted, in the instant `short waits for locks` at the end.

Nothing of the program is replaced: native code observes the C functions of the lock types, for all
locks of the process. A lock that is free is taken as without a recording. Waits of Stretto's own
code are left out.
"""

from __future__ import annotations

import os

import stretto
from stretto._pyhooks import start_lock_waits, stop_lock_waits, take_short_lock_waits
from stretto.client.track_event import slots

category = stretto.Category("python.waits", "waits for locks", ["slow"])
_VALUES = ("made_at", "held_by_tid", "timed_out")
templates = (
    category.template("wait for lock", *_VALUES),
    category.template("wait for notification", *_VALUES),
)
_OWN_CODE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_installed = False


def _on_change(enabled: bool) -> None:
    if enabled:
        start_lock_waits(*templates, _OWN_CODE)
    else:
        stop_lock_waits()


def _write_short_waits() -> None:
    count, total_ns = take_short_lock_waits()
    if count:
        category.instant("short waits for locks", count=count, total_ns=total_ns)


def install() -> None:
    """Record waits while a session records the category."""
    global _installed
    if not _installed:
        _installed = True
        slots.before_disable.append(_write_short_waits)
        slots.observe(category, _on_change)
