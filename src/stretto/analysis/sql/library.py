"""The modules of `include perfetto module`: the files in the folder `library`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.resources.abc import Traversable

_SUFFIX = ".sql"


def _walk(folder: Traversable, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            found |= _walk(entry, f"{prefix}{entry.name}.")
        elif entry.name.endswith(_SUFFIX):
            found[prefix + entry.name.removesuffix(_SUFFIX)] = entry.read_text("utf-8")
    return found


@cache
def _own() -> dict[str, str]:
    return _walk(files("stretto.analysis.sql").joinpath("library"), "")


def modules() -> dict[str, str]:
    """Return the SQL of all modules by name, such as `slices.with_context`."""
    return dict(_own())


def matching(pattern: str, known: Iterable[str]) -> list[str]:
    """Return the names of the modules that match `a.b`, `a.*` or `*`."""
    if pattern.endswith("*"):
        return [name for name in known if name.startswith(pattern[:-1])]
    return [pattern] if pattern in known else []
