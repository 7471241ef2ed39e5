"""Walks over declarations that refer to each other, without recursion."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    Node = TypeVar("Node")


class Cycle(Exception):  # noqa: N818 - a finding, no error
    """A cycle in a graph; `path` leads from a node back to the same node."""

    def __init__(self, path: list) -> None:  # type: ignore[type-arg]
        super().__init__(path)
        self.path = path


def post_order(roots: Iterable[Node], edges: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Return the nodes in an order in which each node follows all nodes that it leads to.

    If several such orders exist, nodes keep the order of `roots` and of the results of `edges`.

    Raises:
        Cycle: No such order exists.
    """
    order: dict[Node, None] = {}
    for root in roots:
        path: dict[Node, Iterator[Node]] = {}
        if root not in order:
            path[root] = iter(edges(root))
        while path:
            node = next(reversed(path))
            for target in path[node]:
                if target in path:
                    nodes = list(path)
                    raise Cycle([*nodes[nodes.index(target) :], target])
                if target not in order:
                    path[target] = iter(edges(target))
                    break
            else:
                del path[node]
                order[node] = None
    return list(order)


def components(roots: Iterable[Node], edges: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """Return the strongly connected components, each after the components that it leads to.

    This is Tarjan's algorithm.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    waiting: dict[Node, None] = {}
    found: list[list[Node]] = []
    for root in roots:
        if root in index:
            continue
        path = [(root, iter(edges(root)))]
        index[root] = low[root] = len(index)
        waiting[root] = None
        while path:
            node, targets = path[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    waiting[target] = None
                    path.append((target, iter(edges(target))))
                    break
                if target in waiting:
                    low[node] = min(low[node], index[target])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    found.append(_pop_to(node, waiting))
    return found


def _pop_to(node: Node, waiting: dict[Node, None]) -> list[Node]:
    component = []
    while True:
        last, _ = waiting.popitem()
        component.append(last)
        if last is node:
            return component
