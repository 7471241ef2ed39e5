from __future__ import annotations

import pytest

from stretto_fidl.compiler.graph import Cycle, components, post_order

GRAPH = {"a": "bc", "b": "d", "c": "d", "d": "", "e": "a"}
CYCLES = {"a": "b", "b": "ac", "c": "d", "d": "ce", "e": ""}


def test_nodes_are_sorted_after_their_dependencies() -> None:
    assert post_order("eab", GRAPH.__getitem__) == list("dbcae")


def test_dependency_cycle_is_reported_with_its_path() -> None:
    with pytest.raises(Cycle) as caught:
        post_order("a", {"a": "b", "b": "c", "c": "b"}.__getitem__)
    assert caught.value.path == ["b", "c", "b"]


def test_strongly_connected_components_are_found() -> None:
    found = [sorted(each) for each in components("a", CYCLES.__getitem__)]
    assert found == [["e"], ["c", "d"], ["a", "b"]]
    assert components("eab", GRAPH.__getitem__) == [["d"], ["b"], ["c"], ["a"], ["e"]]


def test_chains_of_50000_nodes_are_sorted_without_recursion() -> None:
    def following(node: int) -> list[int]:
        return [node + 1] if node < 50_000 else []

    assert post_order([0], following)[0] == 50_000
    assert len(components([0], following)) == 50_001
