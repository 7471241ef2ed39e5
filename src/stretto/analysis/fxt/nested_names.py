"""Flat arguments, put back into what they were made of.

    request.id = 7                     request ┬ id = 7
    request.headers[0] = "a"    <──            └ headers ─ [ "a", "b" ]
    request.headers[1] = "b"

A name that doesn't say it well (an empty part, elements that don't count from 0, a value where
others are nested) is left as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Leaf = tuple[int, float | str | bytes | None]
    """Type and value."""
    Node = Leaf | dict[str, Any] | list[Any]

_NAME = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[0-9]{1,6}\])+")
_PART = re.compile(r"[^.\[\]]+")
_MAX_DEPTH = 20


def nest(
    arguments: Iterable[tuple[str, int, float | str | bytes | None]],
) -> list[tuple[str, Node]]:
    """Names and what they stand for, in the order in which they came."""
    plain: list[tuple[str, Node]] = []
    nested: dict[str, Node] = {}
    for name, kind, value in arguments:
        if _NAME.fullmatch(name) is None:
            plain.append((name, (kind, value)))
            continue
        first, *rest = _PART.findall(name)
        there = first in nested
        if len(rest) > _MAX_DEPTH or not _insert(nested, name, [first, *rest], (kind, value)):
            plain.append((name, (kind, value)))
        elif not there:
            plain.append((first, nested[first]))
    return plain


def _insert(root: dict[str, Node], name: str, parts: list[str], leaf: Leaf) -> bool:
    """Put a leaf where it belongs; False: there is no such place."""
    elements = _elements(name)
    node: Any = root
    for at, part in enumerate(parts):
        is_last = at + 1 == len(parts)
        key: Any = int(part) if at in elements else part
        if isinstance(node, list) != (at in elements):
            return False
        is_new = key == len(node) if isinstance(node, list) else key not in node
        if not is_new and (is_last or (isinstance(node, list) and key > len(node))):
            return False
        if is_new:
            if at + 1 in elements and int(parts[at + 1]):
                return False
            made: Any = leaf if is_last else ([] if at + 1 in elements else {})
            if isinstance(node, list):
                node.append(made)
            else:
                node[key] = made
        node = node[key]
        if not is_last and isinstance(node, tuple):
            return False
    return True


def _elements(name: str) -> frozenset[int]:
    """Which parts of a name are numbers of elements."""
    return frozenset(
        at for at, match in enumerate(_PART.finditer(name)) if name[match.start() - 1] == "["
    )
