"""Modules don't import each other in cycles, including imports for the type checker.

The modules of a cycle can't be read, tested or moved without each other. Imports inside of
functions don't count, because they run after all modules are loaded. Stubs of extensions are
not checked.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.sources import imports, module_name, python_sources

pytestmark = pytest.mark.once

Graph = dict[str, set[str]]

_FIDL = "stretto_fidl.compiler"
KNOWN_PAIRS = {
    frozenset({f"{_FIDL}.declarations", f"{_FIDL}.types"}): (
        "a type names the declaration that it is, and a declaration has types"
    ),
    frozenset({f"{_FIDL}.declarations", f"{_FIDL}.library"}): (
        "a library has declarations, and a declaration knows its library"
    ),
}
"""Two modules that may import each other, and the reason."""
MAX_KNOWN_PAIRS = 5


@cache
def import_graph() -> Graph:
    """Return the modules that each module imports at module level."""
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
    """Return the module of an imported name; empty for a module of another project."""
    while imported and imported not in known:
        imported = imported.rpartition(".")[0]
    return imported


def cycles(graph: Graph) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or indirectly."""
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


def test_modules_do_not_import_each_other_in_cycles() -> None:
    graph = import_graph()
    for one, other in KNOWN_PAIRS:
        graph = {**graph, one: graph[one] - {other}, other: graph[other] - {one}}
    found = cycles(graph)
    assert not found, "cycles of imports:\n" + "\n".join(" ".join(cycle) for cycle in found)


def test_listed_pairs_of_cyclic_modules_are_few_and_exist() -> None:
    graph = import_graph()
    assert len(KNOWN_PAIRS) <= MAX_KNOWN_PAIRS
    for pair, reason in KNOWN_PAIRS.items():
        one, other = pair
        assert other in graph[one], f"{one} imports {other} no more"
        assert one in graph[other], f"{other} imports {one} no more"
        assert reason


def test_import_cycles_are_found() -> None:
    graph = {
        "a": {"b"},
        "b": {"c"},
        "c": {"a", "d"},
        "d": {"e"},
        "e": {"d"},
        "f": {"a", "e"},
    }
    assert cycles(graph) == [["a", "b", "c"], ["d", "e"]]
    assert cycles({"a": {"b"}, "b": set()}) == []


def test_import_of_a_name_is_resolved_to_its_module() -> None:
    graph = import_graph()
    assert "stretto.protozero.wire" in graph["stretto.protozero.codec"]
    assert (
        "stretto.protozero.field" in graph["stretto.protozero.layout"]
    )  # `layout` imports `field` only under TYPE_CHECKING
    assert all("stretto._native" not in imported for imported in graph.values())
