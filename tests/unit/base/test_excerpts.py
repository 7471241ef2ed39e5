"""Excerpts of values: plain types, bounded in size, without sensitive parts."""

from __future__ import annotations

from typing import Any

from stretto.base.excerpts import CUT, MAX_DEPTH, MAX_ELEMENTS, MAX_TEXT, MAX_VALUES, excerpt


class Node:
    """A nested value; `parts` maps names to its child values."""

    def __init__(self, **parts: Any) -> None:
        self.parts = parts


def parts(value: Any) -> Any:
    if isinstance(value, Node):
        return value.parts.items()
    return "a set" if isinstance(value, set) else None


def of(value: Any) -> Any:
    return excerpt(value, parts)


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(count(each) for each in inner)


def test_plain_values_are_unchanged() -> None:
    assert of(Node(a=1, b="two", c=None, d=[True, 1.5], e={7: Node()}, f=set())) == {
        "a": 1, "b": "two", "c": None, "d": [True, 1.5], "e": {"7": {}}, "f": "a set",
    }  # fmt: skip
    assert of(b"\x01\xff") == "01ff"
    assert of(object) == "<class 'object'>"


def test_long_values_are_truncated_and_marked() -> None:
    assert of("x" * (MAX_TEXT + 3)) == "x" * MAX_TEXT + "... 3 more"
    assert of(bytes(MAX_TEXT + 3)) == "00" * MAX_TEXT + "... 3 more"
    assert of(list(range(8000))) == [*range(MAX_ELEMENTS), f"... {8000 - MAX_ELEMENTS} more"]
    many = of(dict.fromkeys(range(40), 0))
    assert len(many) == MAX_ELEMENTS + 1
    assert many[CUT] == "8 more"


def test_depth_of_nested_values_is_limited() -> None:
    deep: Any = "end"
    for _ in range(1000):
        deep = Node(deeper=deep)
    taken, depth = of(deep), 0
    while taken != CUT:
        taken, depth = taken["deeper"], depth + 1
    assert depth == MAX_DEPTH


def test_number_of_items_is_limited() -> None:
    wide: Any = 0
    for _ in range(5):
        wide = [wide] * 20
    assert count(of(wide)) < 2 * MAX_VALUES
