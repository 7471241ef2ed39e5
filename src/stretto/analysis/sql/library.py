"""The modules of `include perfetto module`: the files in the folder `library`."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SUFFIX = ".sql"


def _walk(folder: Traversable, prefix: str) -> dict[str, Traversable]:
    found: dict[str, Traversable] = {}
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            found |= _walk(entry, f"{prefix}{entry.name}.")
        elif entry.name.endswith(_SUFFIX):
            found[prefix + entry.name.removesuffix(_SUFFIX)] = entry
    return found


def modules() -> dict[str, Traversable]:
    """Return the files of all modules by name, such as `slices.with_context`."""
    return _walk(files("stretto.analysis.sql").joinpath("library"), "")


def matching(pattern: str) -> list[str]:
    """Return the names of the modules that match `a.b`, `a.*` or `*`."""
    if pattern.endswith("*"):
        return [name for name in modules() if name.startswith(pattern[:-1])]
    return [pattern] if pattern in modules() else []
