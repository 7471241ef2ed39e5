"""No circle of modules that import each other, those for the type checker included.

A circle means that none of its modules can be read, tested or moved without the others. Imports
inside functions don't count: they run after all modules are loaded. Stubs of extensions are no
modules.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.sources import imports, module_name, python_sources

pytestmark = pytest.mark.once

Graph = dict[str, set[str]]

STILL_TO_DO = ("stretto_fidl.compiler",)
"""Packages that have circles among their own modules. A package without them leaves the list."""

KNOWN_PAIRS: dict[frozenset[str], str] = {}
"""Two modules that may import each other, and the reason."""
MAX_KNOWN_PAIRS = 5


@cache
def import_graph() -> Graph:
    """Each module with the modules that it imports at module level."""
    files = {module_name(path): path for path in python_sources(".py")}
    stubs = {module_name(path) for path in python_sources(".pyi")}
    graph: Graph = {}
    for name, path in files.items():
        found = {
            _module(imported.module, files.keys() | stubs)
            for imported in imports(path)
            if imported.at_top or imported.typing_only
        }
        graph[name] = (found & files.keys()) - {name}
    return graph


def _module(imported: str, known: set[str]) -> str:
    """The module that an imported name is or lies in; empty if it is a foreign one."""
    while imported and imported not in known:
        imported = imported.rpartition(".")[0]
    return imported


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules that reach each other."""
    reach = {name: _reached(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in graph
        if name in reach[name]
    }
    return [list(group) for group in sorted(groups)]


def _reached(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += graph[name]
    return reached


def within(package: str, modules: list[str]) -> bool:
    return all(f"{module}.".startswith(f"{package}.") for module in modules)


def test_no_modules_import_each_other() -> None:
    known = {name: pair for pair in KNOWN_PAIRS for name in pair}
    graph = {name: found - known.get(name, frozenset()) for name, found in import_graph().items()}
    found = [
        circle
        for circle in circles(graph)
        if not any(within(package, circle) for package in STILL_TO_DO)
    ]
    assert not found, "circles of imports:\n" + "\n".join(" ".join(circle) for circle in found)


@pytest.mark.parametrize("package", STILL_TO_DO)
def test_package_still_to_do_has_a_circle(package: str) -> None:
    found = [circle for circle in circles(import_graph()) if within(package, circle)]
    assert found, f"{package} has no circle any more: take it off STILL_TO_DO"


def test_known_pairs_are_few_and_exist() -> None:
    graph = import_graph()
    assert len(KNOWN_PAIRS) <= MAX_KNOWN_PAIRS
    for pair, reason in KNOWN_PAIRS.items():
        one, other = pair
        assert other in graph[one], f"{one} imports {other} no more"
        assert one in graph[other], f"{other} imports {one} no more"
        assert reason


def test_circles_are_found() -> None:
    graph = {
        "a": {"b"},
        "b": {"c"},
        "c": {"a", "d"},
        "d": {"e"},
        "e": {"d"},
        "f": {"a", "e"},
    }
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_imports_of_names_lead_to_their_modules() -> None:
    graph = import_graph()
    assert "stretto.protozero.wire" in graph["stretto.protozero.codec"]
    assert "stretto.protozero.field" in graph["stretto.protozero.layout"]  # under TYPE_CHECKING
    assert all("stretto._native" not in imported for imported in graph.values())
