"""Converts between nested values and flat arguments, whose names are paths into a value.

    request.id = 7                     request ┬ id = 7
    request.headers[0] = "a"    <──>           ├ headers ─ [ "a", "b" ]
    request.headers[1] = "b"                   └ x.y = 1
    request."x.y" = 1
    "http.method" = "GET"              http.method = "GET"

As in TOML, a part of a path is quoted if it is empty or contains one of `.[]"`; within quotes, a
backslash precedes a quote or a backslash. So every path has one meaning. Only traces that Stretto
converted have paths. In traces of other programs a dot is an ordinary character.

If the other parts of a nested value are missing (earlier elements were left out, a path was cut),
the argument stays flat, with its path as its name.
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

_BARE = re.compile(r'[^.\[\]"]+')
_PART = re.compile(
    r'(?:^|(?<=.)\.)(?:([^.\[\]"]+)|"((?:[^"\\]|\\.)*)")|\[([0-9]{1,6})\]', re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MAX_DEPTH = 20


def path_of(name: str) -> str:
    """Return the path of a name: quoted if it has special characters."""
    if _BARE.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def nest(
    arguments: Iterable[tuple[str, int, float | str | bytes | None]],
) -> list[tuple[str, Node]]:
    """Convert flat arguments to nested ones.

    The result is a list of (name, value) pairs, in the order of the arguments.

    Args:
        arguments: Paths, types and values. The arguments of one nested value are consecutive.
    """
    found: list[tuple[str, Node]] = []
    for path, kind, value in arguments:
        leaf = kind, value
        first, *below = _parts(path)
        if found and found[-1][0] == first and below and _insert(found[-1][1], below, leaf):
            continue
        node = _made_of(below, leaf)
        found.append((path, leaf) if node is None else (str(first), node))
    return found


def _parts(path: str) -> list[str | int]:
    """Split a path into names and element numbers; an invalid path is returned as one name."""
    parts: list[str | int] = []
    position = 0
    while position < len(path):
        match = _PART.match(path, position)
        if match is None or len(parts) > _MAX_DEPTH:
            return [path]
        bare, quoted, element = match.groups()
        if bare is not None:
            parts.append(bare)
        else:
            parts.append(_ESCAPED.sub(r"\1", quoted) if element is None else int(element))
        position = match.end()
    return parts if parts and isinstance(parts[0], str) else [path]


def _insert(node: Any, parts: list[str | int], leaf: Leaf) -> bool:
    """Insert a leaf into a nested value; return False if the path doesn't fit into the value."""
    for at, part in enumerate(parts):
        if isinstance(node, tuple) or isinstance(node, list) != isinstance(part, int):
            return False
        if part in (range(len(node)) if isinstance(node, list) else node):
            node = node[part]
            continue
        made = _made_of(parts[at + 1 :], leaf)
        if made is None or (isinstance(part, int) and part > len(node)):
            return False
        if isinstance(node, list):
            node.append(made)
        else:
            node[part] = made
        return True
    return False


def _made_of(parts: list[str | int], leaf: Leaf) -> Node | None:
    """Return a new nested value with one leaf; None if an index of a list isn't 0."""
    node: Node = leaf
    for part in reversed(parts):
        if isinstance(part, str):
            node = {part: node}
        elif part == 0:
            node = [node]
        else:
            return None
    return node
