"""`python.gc`: each garbage collection is a slice on the thread that runs it.

The callback is native. A Python callback would run the program's signal handlers inside the
collector, which ignores the exceptions that they raise.
"""

from __future__ import annotations

import gc

import stretto
from stretto._pyhooks import gc_callback
from stretto.client.track_event import slots

category = stretto.Category("python.gc", "runs of the garbage collector", ["slow"])
_on_phase = gc_callback(category, stretto.thread_track)
_installed = False


def _on_change(enabled: bool) -> None:
    listening = _on_phase in gc.callbacks
    if enabled and not listening:
        gc.callbacks.append(_on_phase)
    elif listening and not enabled:
        gc.callbacks.remove(_on_phase)


def install() -> None:
    """Record garbage collections while a session records the category."""
    global _installed
    if not _installed:
        _installed = True
        slots.observe(category, _on_change)
