"""Flat names become nested ones, and none is lost."""

from __future__ import annotations

import pytest

from stretto.analysis.fxt.nested_names import nest

X, Y, Z = (6, "x"), (6, "y"), (1, 3)


def nested(*pairs: tuple[str, tuple[int, str | int]]) -> list[tuple[str, object]]:
    return list(nest((name, *leaf) for name, leaf in pairs))


def test_nested() -> None:
    assert nested(("a", X), ("r.id", Z), ("b", Y), ("r.h[0]", X), ("r.h[1].c", Y)) == [
        ("a", X),
        ("r", {"id": Z, "h": [X, {"c": Y}]}),
        ("b", Y),
    ]
    assert nested(("m[0][0]", X), ("m[0][1]", Y), ("m[1]", Z)) == [("m", [[X, Y], Z])]


@pytest.mark.parametrize(
    "name",
    ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[1]", "a.b[2].c", "[0]", "a[0]b", "a]"],
)
def test_names_that_say_nothing(name: str) -> None:
    assert nested((name, X), ("b", Y)) == [(name, X), ("b", Y)]


def test_what_contradicts_stays_flat() -> None:
    assert nested(("a.b", X), ("a.b", Y), ("a.b.c", Y), ("a[0]", Z), ("a.c", Z)) == [
        ("a", {"b": X, "c": Z}),
        ("a.b", Y),
        ("a.b.c", Y),
        ("a[0]", Z),
    ]
    assert nested(("a[0]", X), ("a[2]", Y), ("a[0]", Z), ("a[x]", Z)) == [
        ("a", [X]),
        ("a[2]", Y),
        ("a[0]", Z),
        ("a[x]", Z),
    ]


def test_depth_is_bounded() -> None:
    deep = "a" + ".a" * 900
    assert nested((deep, X)) == [(deep, X)]
