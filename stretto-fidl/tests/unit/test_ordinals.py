"""Ordinals of methods equal the public test vectors of the algorithm."""

from __future__ import annotations

import pytest

from stretto_fidl.ordinals import is_selector, ordinal_of, selector_of


def test_ordinals_equal_those_of_the_public_test_vectors() -> None:
    assert ordinal_of("a.b.c/protocol.selector") == 4257738365359108720
    assert ordinal_of("a.b.c/protocol.s0") == 0x3B1625372E15F1AE
    assert ordinal_of("test.protocols/ChannelProtocol.MethodA") == 3155008840945527714
    assert ordinal_of("test.anonymous/SomeProtocol.SomeMethod") == 2515914517457749720


def test_highest_bit_of_an_ordinal_is_never_set() -> None:
    assert all(ordinal_of(f"a/b.c{number}") >> 63 == 0 for number in range(200))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [(None, "a.b/P.M"), ("N", "a.b/P.N"), ("x.y/Q.N", "x.y/Q.N")],
)
def test_selector_replaces_the_method_name_or_the_full_name(
    selector: str | None, expected: str
) -> None:
    assert selector_of("a.b", "P", "M", selector) == expected


def test_selector_is_a_method_name_or_a_full_name() -> None:
    assert all(is_selector(text) for text in ("M", "my_method2", "a/B.c", "a.b.c/P.M"))
    assert not any(is_selector(text) for text in ("", "a b", "2x", "a/b", "/P.M", "a_", "a.b"))
