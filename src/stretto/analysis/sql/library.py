"""The modules of `include perfetto module`: the files in the folder `library`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import QueryError
from stretto.base.nearest_name import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

_SUFFIX = ".sql"
_FOR_DUCKDB = ".duckdb"
"""Ends the name of a module that DuckDB has in place of the one without it."""
_CREATED = re.compile(
    r"^create\s+(?:or\s+replace\s+)?perfetto\s+(?:table|view|function|macro)\s+(\w+)",
    re.IGNORECASE | re.MULTILINE,
)
LISTING = "`show modules` lists all"
"""How a user finds the modules."""


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


@cache
def _defining() -> dict[str, str]:
    return {
        name.lower(): module.removesuffix(_FOR_DUCKDB)
        for module, text in _own().items()
        for name in _CREATED.findall(text)
    }


def inclusion_of(name: str) -> str:
    """Return a sentence with the module that defines a table, function or macro; else nothing."""
    module = _defining().get(name.lower())
    return f" Write first: include perfetto module {module};" if module else ""


class Library:
    """The modules that a session can include, and those that it has included.

    Args:
        for_duckdb: Whether they are for DuckDB, for which some have another text.
    """

    def __init__(self, *, for_duckdb: bool = False) -> None:
        own = _own()
        self._texts = {name: text for name, text in own.items() if not name.endswith(_FOR_DUCKDB)}
        if for_duckdb:
            self._texts |= {name: own.get(name + _FOR_DUCKDB, own[name]) for name in self._texts}
        self._included: set[str] = set()

    def add(self, texts: Mapping[str, str]) -> None:
        """Add modules, given as SQL by name; they replace modules of the same names."""
        self._texts.update(texts)
        self._included -= texts.keys()

    def names(self) -> list[str]:
        """Return the names of all modules, without private ones such as `slices._covered`."""
        return sorted(name for name in self._texts if "._" not in name)

    def include(self, pattern: str) -> Iterator[str]:
        """Yield the SQL of the modules that match `a.b`, `a.*` or `*`, each one only once.

        Raises:
            QueryError: No module matches.
        """
        names = self._matching(pattern)
        if not names:
            advice = f"{nearest(pattern, self.names())} {LISTING}"
            raise QueryError(f"there is no module {pattern}.{advice}")
        for name in names:
            if name not in self._included:
                self._included.add(name)
                yield self._texts[name]

    def _matching(self, pattern: str) -> list[str]:
        if pattern.endswith("*"):
            return [name for name in self._texts if name.startswith(pattern[:-1])]
        return [pattern] if pattern in self._texts else []
