"""The surface of the package `perfetto`: its programs run after a change of their imports.

    from perfetto.trace_processor import TraceProcessor
    from stretto.analysis.perfetto.trace_processor import TraceProcessor

The modules, classes and arguments have the names of that package. There is no binary to download:
options about it are accepted, and have no effect.
"""

from __future__ import annotations
