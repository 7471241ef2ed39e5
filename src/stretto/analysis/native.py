"""The importer in C: a part of the extension `_native`.

Wheels for systems that can't record have it alone, as the extension `_importer`.
"""

from __future__ import annotations

try:
    from stretto._native import TraceImporter, scan_trace, source_locations
except ImportError:
    from stretto._importer import TraceImporter, scan_trace, source_locations

__all__ = ["TraceImporter", "scan_trace", "source_locations"]
