"""Types of the extension `_importer`: the parts of `_native` that read traces.

Only wheels for systems that can't record have it (native/importer).
"""

from stretto._native import ArrowTable as ArrowTable
from stretto._native import TraceImporter as TraceImporter
from stretto._native import scan_trace as scan_trace
from stretto._native import source_locations as source_locations
from stretto._native import tokenize as tokenize
