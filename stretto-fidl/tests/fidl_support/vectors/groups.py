"""All test vectors, grouped by module, and the classes of their FIDL library."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fidl_support.vectors.case import Case
from fidl_support.vectors.schema import LIBRARY
from stretto_fidl.bindings import load
from stretto_fidl.codec.handle import OBJECT_TYPES, Handle

FOLDER = Path(__file__).parent
HELPERS = {"case", "groups", "schema"}
GROUPS = {
    path.stem: importlib.import_module(f"fidl_support.vectors.{path.stem}").CASES
    for path in sorted(FOLDER.glob("*.py"))
    if path.stem not in HELPERS
}
TYPES = load(LIBRARY)


@contextmanager
def handles_of(case: Case) -> Iterator[list[Handle]]:
    """Yield open handles of the types that a test vector needs."""
    made = [
        Handle(os.open(os.devnull, os.O_RDONLY), OBJECT_TYPES[kind], rights)
        for kind, rights in case.handles
    ]
    try:
        yield made
    finally:
        for handle in made:
            handle.close()
