"""Sizes of types in messages equal those computed by hand from the rules of the format."""

from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of, member_type, named, shape
from stretto_fidl.compiler.shapes import UNBOUNDED

NO, YES = 0, 1

LAYOUTS = {
    "struct {}": (1, 1, 0, 0, 0, NO, NO),
    "struct { a bool; }": (1, 1, 0, 0, 0, NO, NO),
    "struct { a bool; b uint64; }": (16, 8, 0, 0, 0, YES, NO),
    "struct { a uint64; b bool; }": (16, 8, 0, 0, 0, YES, NO),
    "struct { a uint32; b uint16; c uint16; }": (8, 4, 0, 0, 0, NO, NO),
    "struct { a array<uint16, 3>; }": (6, 2, 0, 0, 0, NO, NO),
    "struct { a string:5; }": (16, 8, 1, 0, 8, YES, NO),
    "struct { a string; }": (16, 8, 1, 0, UNBOUNDED, YES, NO),
    "struct { a vector<uint8>:3; }": (16, 8, 1, 0, 8, YES, NO),
    "struct { a vector<uint64>:3; }": (16, 8, 1, 0, 24, NO, NO),
    "struct { a vector<string:8>:3; }": (16, 8, 2, 0, 3 * (16 + 8), YES, NO),
    "struct { a vector<uint64>; }": (16, 8, 1, 0, UNBOUNDED, NO, NO),
    "struct { a box<struct { b uint32; }>; }": (8, 8, 1, 0, 8, YES, NO),
    "struct { a array<string:8, 2>; }": (32, 8, 1, 0, 16, YES, NO),
    "resource struct { a client_end:P; b server_end:P; }": (8, 4, 0, 2, 0, NO, NO),
    "resource struct { a vector<client_end:P>:4; }": (16, 8, 1, 4, 16, YES, NO),
    "table {}": (16, 8, 1, 0, 0, NO, YES),
    "table { 1: a uint32; }": (16, 8, 2, 0, 8, NO, YES),
    "table { 1: a uint8; }": (16, 8, 2, 0, 8, YES, YES),
    "table { 1: a uint64; }": (16, 8, 2, 0, 16, NO, YES),
    "table { 3: a uint64; }": (16, 8, 2, 0, 32, NO, YES),
    "strict union { 1: a uint32; }": (16, 8, 1, 0, 0, NO, NO),
    "strict union { 1: a uint64; 2: b string:9; }": (16, 8, 2, 0, 32, YES, NO),
    "flexible union { 1: a uint8; }": (16, 8, 1, 0, 0, YES, YES),
    "flexible union {}": (16, 8, 0, 0, 0, NO, YES),
    "resource union { 1: a client_end:P; 2: b uint8; }": (16, 8, 1, 1, 0, YES, YES),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_has_the_sizes_computed_by_hand(layout: str) -> None:
    ir = compiled(f"protocol P {{}};\ntype X = {layout};\n")
    assert shape(ir, "X") == LAYOUTS[layout]


def test_members_have_the_expected_offsets_and_padding() -> None:
    ir = compiled("type X = struct { a uint8; b uint32; c uint8; d uint8; };")
    places = [tuple(m["field_shape_v2"].values()) for m in named(ir, "X")["members"]]
    assert places == [(0, 3), (4, 0), (8, 0), (9, 2)]


@pytest.mark.parametrize(
    "text",
    [
        "type X = struct { a box<X>; };",
        "type X = struct { a box<Y>; };\ntype Y = struct { b box<X>; };",
        "type X = struct { a vector<U:optional>; };\ntype U = strict union { 1: x X; };",
    ],
)
def test_size_of_a_recursive_type_is_unbounded(text: str) -> None:
    _, _, depth, handles, out_of_line, _, flexible = shape(compiled(text), "X")
    assert (depth, handles, out_of_line, flexible) == (UNBOUNDED, 0, UNBOUNDED, NO)


def test_handles_of_recursive_types_are_unbounded() -> None:
    ir = compiled("protocol P {};\ntype X = resource struct { a box<X>; b client_end:P; };")
    assert shape(ir, "X")[3] == UNBOUNDED


def test_padding_and_flexible_envelopes_of_a_type_count_for_all_types_of_its_cycle() -> None:
    ir = compiled(
        "type A = struct { b box<B>; };\n"
        "type B = struct { c box<C>; };\n"
        "type C = struct { a box<A>; t table {}; n uint8; };"
    )
    assert [shape(ir, name)[5:] for name in "ABC"] == [(YES, YES)] * 3


def test_nested_structs_have_their_size_in_any_order_of_definition() -> None:
    ir = compiled(
        "type A = struct { b B; x uint8; next box<A>; };\n"
        "type B = struct { c C; y uint8; };\n"
        "type C = struct { z uint64; a box<A>; };"
    )
    assert [shape(ir, name)[0] for name in "ABC"] == [40, 24, 16]


def test_huge_sizes_saturate_at_the_maximum() -> None:
    ir = compiled("type X = struct { a vector<vector<uint64>:0xffffffff>:0xffffffff; };")
    assert shape(ir, "X")[4] == UNBOUNDED
    assert "maybe_element_count" not in member_type(ir, "X", "a")


def test_large_structs_are_refused() -> None:
    assert shape(compiled("type X = struct { a array<uint8, 65535>; };"), "X")[0] == 65535
    error = error_of("type X = struct { a array<uint8, 65536>; };")
    assert "65536 bytes inline" in error.reason


def test_chain_of_2000_types_is_compiled() -> None:
    text = "\n".join(f"type T{i} = struct {{ next T{i + 1}; }};" for i in range(2000))
    ir = compiled(text + "\ntype T2000 = struct { a uint8; };")
    assert shape(ir, "T0") == (1, 1, 0, 0, 0, NO, NO)
    assert ir["declaration_order"][0] == "test.example/T2000"
