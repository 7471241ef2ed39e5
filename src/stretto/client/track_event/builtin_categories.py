"""The built-in categories: what the interpreter does, recorded only where named.

Each is served by a module above the client, loaded when a session first wants the category.
They are tagged `slow`, so that a system-wide session never switches function tracing on in
every process of a machine by accident.
"""

from __future__ import annotations

import sys
from importlib import import_module

from stretto import _native
from stretto.client.track_event import slots

PROVIDERS = {
    "python.functions": ("calls of Python functions", "stretto.profilers.functions"),
    "python.gc": ("runs of the garbage collector", "stretto.profilers.gc"),
    "python.asyncio": ("steps of asyncio tasks", "stretto.profilers.asyncio_tasks"),
    "python.log": ("log records from INFO up", "stretto.profilers.log"),
    "python.exceptions": ("uncaught exceptions", "stretto.profilers.exceptions"),
}
"""Category name: (description, the module whose `install()` serves it)."""

_loaded: set[str] = set()
_announced: set[str] = set()


def _load(module: str) -> None:
    if module not in _loaded:
        _loaded.add(module)
        imported = sys.modules.get(module) or import_module(module)
        imported.install()


def load_all() -> None:
    """Import the modules that serve them, before any session wants one."""
    for _, module in PROVIDERS.values():
        import_module(module)


def announce() -> None:
    """Make the categories known, once. One that the program has made already gets our tags."""
    for name, (description, module) in PROVIDERS.items():
        if name not in _announced:
            _announced.add(name)
            category = _native.Category(name, description, ["slow"])
            slots.observe(category, lambda enabled, m=module: _load(m) if enabled else None)  # type: ignore[misc]
