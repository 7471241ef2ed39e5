"""The built-in data sources besides `track_event`: a higher layer implements them.

Every program that connects to a service offers them, so that sessions can use them at any time.
"""

from __future__ import annotations

import sys

SOURCES = {
    "python.heap": ("stretto.profilers.heap.source", "HeapProfile"),
    "python.object_graph": ("stretto.profilers.heap.object_graph", "ObjectGraph"),
}
"""Name of the data source: (module, class)."""


def register_all() -> None:
    """Import the data sources, and register them."""
    for module, name in SOURCES.values():
        __import__(module)  # `importlib` itself isn't imported: that takes longer.
        getattr(sys.modules[module], name).register()
