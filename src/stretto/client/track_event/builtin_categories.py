"""The built-in categories: events of the interpreter, recorded only if a session names them.

A module of a higher layer implements each category. The module is loaded when a session first
enables its category. The categories have the tag `slow`, so that a system-wide session without tags
in its config doesn't enable function tracing in every process.
"""

from __future__ import annotations

import sys

from stretto import _native
from stretto.client.track_event import slots

PROVIDERS = {
    "python.functions": ("calls of Python functions", "stretto.profilers.functions"),
    "python.managers": (
        "context managers made of generators",
        "stretto.profilers.context_managers",
    ),
    "python.gc": ("runs of the garbage collector", "stretto.profilers.gc"),
    "python.asyncio": ("asyncio tasks and their steps", "stretto.profilers.task_frameworks"),
    "python.log": ("log records from INFO up", "stretto.profilers.log"),
    "python.waits": ("waits for locks", "stretto.profilers.lock_waits"),
    "python.io_waits": ("waits for files, peers and timers", "stretto.profilers.io_waits"),
    "python.gil_waits": ("waits for the GIL", "stretto.profilers.gil_waits"),
    "python.loops": ("lag of event loops, and what blocked them", "stretto.profilers.loop_watch"),
    "python.exceptions": ("uncaught exceptions", "stretto.profilers.exceptions"),
}
"""Category name: (description, the module whose `install()` implements it)."""

_loaded: set[str] = set()
_announced: set[str] = set()


def _load(module: str) -> None:
    if module not in _loaded:
        _loaded.add(module)
        __import__(module)
        sys.modules[module].install()


def load_all() -> None:
    """Import the modules of all built-in categories, before a session enables one."""
    for _, module in PROVIDERS.values():
        __import__(module)  # `importlib` itself isn't imported: that takes longer.


def announce() -> None:
    """Create the categories, once. Existing categories of these names get the tag `slow`."""
    for name, (description, module) in PROVIDERS.items():
        if name not in _announced:
            _announced.add(name)
            category = _native.Category(name, description, ["slow"])
            slots.observe(category, lambda enabled, m=module: _load(m) if enabled else None)  # type: ignore[misc]
