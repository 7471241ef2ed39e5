"""Units of the C sources include each other's headers without cycles.

A unit is a header with the sources of its name: `emit.h` and `emit.c`, or `trace_buffer.h` and all
`trace_buffer_*.c` that have no header of their own. A source that adds a part of the module
(ST_BIND_PART) is a separate unit, with or without a header. A unit uses another unit if one of its
files includes the header of the other unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.sources import ROOT, native_sources, report, where

pytestmark = pytest.mark.once

NATIVE = ROOT / "native"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
PROTOTYPE = re.compile(r"^(?!static|typedef|extern|#)[\w*][\w* ]*?[ *](\w+)\([^{}();]*\);", re.M)
DEFINITION = "(?m)^(?!static)[\\w*(){{}} ]*?\\b{}\\([^;{{}}]*\\)\\s*\\{{"

# Folders below native/. A file includes only headers of its own folder and of earlier folders.
LAYERS = (
    "core",
    "analysis",
    "probes",
    "preload",
    "bind/common",
    "bind/data_path",
    "bind/protozero",
    "bind/track_event",
    "bind/flows",
    "bind/analysis",
    "bind/probes",
    "bind",
)
RANK = {folder: rank for rank, folder in enumerate(LAYERS)}

CAPSULE = "bind/track_event/track_event_api.h"
"""The only header of native/bind that native/hooks may include."""

KNOWN_CYCLES: dict[frozenset[str], str] = {}
"""Units that use each other, and the reason; at most five, with those of test_imports.py."""

IMPLEMENTED_BY = {"hooks/backend": ("hooks/monitoring", "hooks/profile")}
"""Headers with one implementation for each version of CPython."""


def sources() -> list[Path]:
    return [
        path
        for folder in ("core", "probes", "preload", "bind", "hooks")
        for path in native_sources(folder)
    ]


def folder_of(path: Path) -> str:
    return path.parent.relative_to(NATIVE).as_posix()


def unit_of(path: Path) -> str:
    """Return a file's unit: `core/trace_buffer` for `core/trace_buffer_read.c`."""
    stems = {header.stem for header in path.parent.glob("*.h")}
    if _is_part(path):
        stems.add(path.stem)
    parts = path.stem.removesuffix("_internal").split("_")
    prefixes = ("_".join(parts[:count]) for count in range(len(parts), 0, -1))
    stem = next((prefix for prefix in prefixes if prefix in stems), path.stem)
    return f"{folder_of(path)}/{stem}"


def _is_part(path: Path) -> bool:
    return f"ST_BIND_PART({path.stem})" in path.read_text()


def included(path: Path) -> list[Path]:
    """Return the headers of this project that a file includes."""
    names = INCLUDE.findall(path.read_text())
    found = []
    for name in names:
        candidates = (path.parent / name, NATIVE / name)
        found += [candidate for candidate in candidates if candidate.exists()][:1]
    return found


def uses() -> dict[str, set[str]]:
    """Return, for each unit, the set of units that it uses."""
    graph: dict[str, set[str]] = {}
    for path in sources():
        unit = unit_of(path)
        graph.setdefault(unit, set()).update(unit_of(header) for header in included(path))
    return {unit: used - {unit} for unit, used in graph.items()}


def cycles(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Return the largest sets of units that all use each other, directly or indirectly."""
    reached = {unit: _reachable(graph, unit) for unit in graph}
    found = {
        frozenset(other for other in reached[unit] if unit in reached.get(other, ()))
        for unit in graph
        if unit in reached[unit]
    }
    return sorted(found, key=sorted)


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        unit = waiting.pop()
        if unit not in seen:
            seen.add(unit)
            waiting += graph.get(unit, ())
    return seen


def test_c_units_do_not_use_each_other_in_cycles() -> None:
    found = [cycle for cycle in cycles(uses()) if cycle not in KNOWN_CYCLES]
    report([" and ".join(sorted(cycle)) + " use each other" for cycle in found])


def test_listed_cycles_of_c_units_exist() -> None:
    assert set(KNOWN_CYCLES) <= set(cycles(uses()))


def test_cycles_of_units_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str]()}
    assert cycles(graph) == [frozenset({"b", "c"})]


def test_c_sources_include_only_headers_of_allowed_folders() -> None:
    violations = []
    for path in sources():
        mine = folder_of(path)
        for header in included(path):
            other = folder_of(header)
            if mine == "hooks":
                name = header.relative_to(NATIVE).as_posix()
                allowed = other in ("hooks", "probes", "core") or name == CAPSULE
            else:
                allowed = other in RANK and RANK[other] <= RANK[mine]
            if not allowed:
                violations.append(where(path, 1, f"{mine} may not include {other}/{header.name}"))
    report(violations)


def test_extensions_include_headers_by_their_path() -> None:
    """A file name can be ambiguous: `core/arbiter.h` and `bind/data_path/arbiter.h` exist."""
    report(
        [
            where(path, 1, f'"{name}" is no path below native')
            for path in sources()
            if not path.is_relative_to(NATIVE / "core")
            for name in INCLUDE.findall(path.read_text())
            if not name.startswith("internal/") and not (NATIVE / name).exists()
        ]
    )


def test_every_source_of_an_extension_has_a_header() -> None:
    """`module.c`, parts of the module, and implementations of another header need no header."""
    implementations = {unit for units in IMPLEMENTED_BY.values() for unit in units}
    report(
        [
            where(path, 1, "no header of its name, and no part of the module")
            for path in native_sources("bind") + native_sources("hooks")
            if path.suffix == ".c"
            and path.stem != "module"
            and f"{folder_of(path)}/{path.stem}" not in implementations
            and not path.with_suffix(".h").exists()
            and not _is_part(path)
        ]
    )


def test_functions_are_declared_by_the_header_of_their_unit() -> None:
    """With this rule, the includes of a unit show all units that it uses."""
    texts: dict[str, str] = {}
    for path in sources():
        texts[unit_of(path)] = texts.get(unit_of(path), "") + _code(path)
    violations = []
    for path in sources():
        if path.suffix != ".h":
            continue
        unit = unit_of(path)
        text = "".join(texts[name] for name in (unit, *IMPLEMENTED_BY.get(unit, ())))
        violations += [
            where(path, 1, f"{name} is not defined in {unit}")
            for name in PROTOTYPE.findall(_code(path))
            if not re.search(DEFINITION.format(name), text)
        ]
    report(violations)


def _code(path: Path) -> str:
    text = COMMENT.sub("", path.read_text())
    return re.sub(r"__attribute__\(\(\w+\)\)\s*|_Noreturn\s+", "", text)
