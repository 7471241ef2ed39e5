"""Argument names with paths are converted to nested values without losses."""

from __future__ import annotations

import pytest

from stretto.analysis.fxt.nested_names import nest, path_of

X, Y, Z = (6, "x"), (6, "y"), (1, 3)


def nested(*pairs: tuple[str, tuple[int, str | int]]) -> list[tuple[str, object]]:
    return list(nest((name, *leaf) for name, leaf in pairs))


def test_paths_are_converted_to_nested_values() -> None:
    assert nested(("a", X), ("r.id", Z), ("r.h[0]", X), ("r.h[1].c", Y), ("b", Y)) == [
        ("a", X),
        ("r", {"id": Z, "h": [X, {"c": Y}]}),
        ("b", Y),
    ]
    assert nested(("m[0][0]", X), ("m[0][1]", Y), ("m[1]", Z)) == [("m", [[X, Y], Z])]


def test_quoted_path_parts_are_plain_names() -> None:
    assert nested(('"a.b"', X), ('a."".c', Y), ('a."x[0]"[0]', Z), ('""', X)) == [
        ("a.b", X),
        ("a", {"": {"c": Y}, "x[0]": [Z]}),
        ("", X),
    ]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a", "a"),
        ("é \\\n", "é \\\n"),
        ("", '""'),
        ("http.method", '"http.method"'),
        ("a[0]", '"a[0]"'),
        ('"', r'"\""'),
        ("\\.\n", '"\\\\.\n"'),
        (".", '"."'),
    ],
)
def test_name_part_with_special_characters_is_quoted(name: str, path: str) -> None:
    assert path_of(name) == path
    assert nested((path, X), (f"a.{path}", Y)) in (
        [(name, X), ("a", {name: Y})],
        [("a", X), ("a", {"a": Y})],
    )


@pytest.mark.parametrize(
    "name",
    ["", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[1]", "a.b[2].c", "[0]", "a[0]b", "a]",
     '"a', 'a"b"', '"a"b', 'a."b'],
)  # fmt: skip
def test_name_that_is_no_valid_path_is_a_plain_name(name: str) -> None:
    assert nested((name, X), ("b", Y)) == [(name, X), ("b", Y)]


def test_value_with_a_conflicting_path_begins_a_new_argument() -> None:
    assert nested(("a.b", X), ("a.b", Y), ("a.b.c", Y), ("a[0]", Z), ("a.c", Z)) == [
        ("a", {"b": X}),
        ("a", {"b": Y}),
        ("a", {"b": {"c": Y}}),
        ("a", [Z]),
        ("a", {"c": Z}),
    ]
    assert nested(("a[0]", X), ("a[2]", Y), ("a", Z), ("a.b", Z)) == [
        ("a", [X]),
        ("a[2]", Y),
        ("a", Z),
        ("a", {"b": Z}),
    ]


def test_nesting_depth_is_bounded() -> None:
    deep = "a" + ".a" * 900
    assert nested((deep, X)) == [(deep, X)]
