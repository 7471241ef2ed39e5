from __future__ import annotations

import pytest

from stretto_fidl.compiler.names import canonical, upper_camel_case


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("foo", "foo"),
        ("FooBar", "foo_bar"),
        ("fooBar", "foo_bar"),
        ("HTTPServer", "http_server"),
        ("http_server", "http_server"),
        ("FOO_BAR", "foo_bar"),
        ("Foo2Bar", "foo2_bar"),
        ("a__b", "a_b"),
    ],
)
def test_name_is_converted_to_its_canonical_form(name: str, expected: str) -> None:
    assert canonical(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("table_member", "TableMember"), ("flags", "Flags"), ("aB_c", "ABC")]
)
def test_name_is_converted_to_upper_camel_case(name: str, expected: str) -> None:
    assert upper_camel_case(name) == expected
