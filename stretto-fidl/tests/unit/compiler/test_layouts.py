from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of, named


def test_bits_have_their_mask_strictness_and_type() -> None:
    ir = compiled("type B = strict bits : uint8 { A = 1; C = 0x80; };")
    bits = named(ir, "B")
    assert (bits["mask"], bits["strict"], bits["type"]["subtype"]) == ("129", True, "uint8")


def test_flexible_enum_has_an_unknown_value() -> None:
    ir = compiled(
        "type A = enum { X = 1; };\ntype B = flexible enum : int8 { X = 1; };\n"
        "type C = enum : uint8 { X = 1; @unknown Y = 9; };\ntype D = strict enum { X = 1; };"
    )
    assert [named(ir, name).get("maybe_unknown_value") for name in "ABCD"] == [
        0xFFFFFFFF,
        127,
        9,
        None,
    ]
    assert named(ir, "A")["type"] == "uint32"


def test_strictness_and_resource_flags_have_their_defaults() -> None:
    ir = compiled(
        "type A = table {};\ntype B = union {};\ntype C = strict union { 1: a bool; };\n"
        "type D = resource struct {};\n"
    )
    flags = [(named(ir, n).get("strict"), named(ir, n)["resource"]) for n in "ABCD"]
    assert flags == [(False, False), (False, False), (True, False), (None, True)]


def test_nested_layouts_are_named_after_their_member() -> None:
    ir = compiled(
        "type A = struct { the_b struct { the_c vector<table { 1: the_d enum {}; }>; }; };\n"
        'type E = union { 1: f @generated_name("Other") bits {}; };'
    )
    assert named(ir, "TheD")["naming_context"] == ["A", "the_b", "the_c", "the_d"]
    assert named(ir, "Other")["naming_context"] == ["E", "f"]
    assert set(ir["declarations"]) == {
        f"test.example/{name}" for name in ("A", "TheB", "TheC", "TheD", "E", "Other")
    }


def test_reserved_ordinals_are_omitted_from_the_ir() -> None:
    ir = compiled("type T = table { 1: reserved; 2: a bool; };")
    assert [m["ordinal"] for m in named(ir, "T")["members"]] == [2]


def test_default_values_of_members_are_in_the_ir() -> None:
    ir = compiled(
        "@allow_deprecated_struct_defaults\ntype S = struct { a uint8 = 5; b E = E.X; "
        'c string = "x"; d bool; };\ntype E = strict enum { X = 3; };'
    )
    values = [m.get("maybe_default_value", {}).get("value") for m in named(ir, "S")["members"]]
    assert values == ["5", "3", "x", None]


def test_resource_layouts_have_the_resource_flag() -> None:
    text = "protocol P {};\ntype S = resource struct { a client_end:P; };\n"
    assert named(compiled(text), "S")["resource"]
    error = error_of(text + "type T = table { 1: s vector<box<S>>; };")
    assert "write `resource table`" in error.reason
    assert error.source_line == "type T = table { 1: s vector<box<S>>; };"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("type X = struct { a bool; a bool; };", "same or too similar names"),
        ("type X = struct { fooBar bool; foo_bar bool; };", "same or too similar names"),
        ("type X = table { 1: a bool; 1: b bool; };", "ordinal 1 is used twice"),
        ("type X = table { 1: reserved; 1: b bool; };", "ordinal 1 is used twice"),
        ("type X = table { 65: a bool; };", "go to 64"),
        ("type X = table { 64: a bool; };", "must be a table"),
        ("type X = table { 1: a string:optional; };", "can't be optional"),
        ("type X = union { 1: a string:optional; };", "can't be optional"),
        ("type X = strict union {};", "at least one member"),
        ("type X = strict union { 1: reserved; };", "at least one member"),
        ("type X = strict enum {};", "at least one member"),
        ("type X = strict bits {};", "at least one member"),
        ("type X = strict struct {};", "a struct can't be `strict`"),
        ("type X = flexible table {};", "a table can't be `flexible`"),
        ("type X = resource enum {};", "an enum can't be `resource`"),
        ("type X = strict flexible union { 1: a bool; };", "exclude each other"),
        ("type X = overlay { 1: a bool; };", "must be `strict`"),
        ("type X = strict overlay { 1: a bool; 2: reserved; };", "reserved"),
        ("type X = enum : float32 { A = 1; };", "must be an integer"),
        ("type X = enum : string { A = 1; };", "must be an integer"),
        ("type X = bits : int8 { A = 1; };", "unsigned integer"),
        ("type X = enum { A = 1; B = 1; };", "same value as `A`"),
        ("type X = enum { A = 1; a = 2; };", "too similar"),
        ("type X = enum : uint8 { A = 255; };", "255 is the value for unknown members"),
        ("type X = strict enum { @unknown A = 1; };", "makes no sense in a strict enum"),
        ("type X = enum { @unknown A = 1; @unknown B = 2; };", "only one member"),
        ("type X = bits { A = 3; };", "isn't a power of two"),
        ("type X = bits { A = 0; };", "isn't a power of two"),
        ("type X = bits { A = 1; B = 1; };", "same value"),
        ("type X = struct { a uint8 = 1; };", "deprecated"),
        ("@allow_deprecated_struct_defaults\ntype X = struct { a vector<bool> = 1; };", "default"),
        ("type X = struct {};\ntype x = struct {};", "too similar a name"),
        ("type X = struct {};\nconst X bool = true;", "the same name as"),
        ("type X = struct { y struct {}; };\ntype Y = struct {};", "the same name as"),
        ("type X = struct { x X; };", "contain each other: X -> X"),
        ("type X = struct { y Y; };\ntype Y = table { 1: x array<X, 2>; };", "X -> Y -> X"),
        ("resource_definition R { properties {}; };", "needs the property `subtype`"),
        ("resource_definition R { properties { subtype uint32; }; };", "must be enum"),
        ("resource_definition R : uint8 { properties {}; };", "must be uint32"),
    ],
)
def test_invalid_layouts_are_refused(text: str, reason: str) -> None:
    assert reason in error_of(text).reason


@pytest.mark.parametrize(
    ("text", "way_out", "old", "new"),
    [
        ("type X = struct { x X; };", "in struct `X` make it `box<X>`", "x X", "x box<X>"),
        ("type X = struct { x vector<X>; };", "make it `box<X>`", "<X>", "<box<X>>"),
        ("type X = struct { u U; }; type U = union { 1: x X; };",
         "in struct `X` make it `U:optional`", "u U", "u U:optional"),
        ("type U = union { 1: x X; }; type X = struct { u vector<U>; };",
         "in struct `X` make it `U:optional`", "<U>", "<U:optional>"),
        ("type T = table { 1: x X; }; type X = struct { t T; };",
         "in struct `X` make it `vector<T>:optional`", "t T", "t vector<T>:optional"),
        ("type T = table { 1: t T; };",
         "put a struct between", "t T; };", "b B; }; type B = struct { t vector<T>:optional; };"),
        ("type U = union { 1: u U; };",
         "put a struct between", "u U; };", "b B; }; type B = struct { u U:optional; };"),
        ("type T = table { 1: v vector<T>; };",
         "put a struct between", "vector<T>;", "B; }; type B = struct { t vector<T>:optional;"),
        ("type N = vector<N>;", "can't be made of itself", "<N>", "<int32>"),
        ("alias A = X; type X = struct { x A; };", "make it `box<A>`", "x A", "x box<A>"),
        ("struct X { X x; };", "in struct `X` make it `X?`", "X x", "X? x"),
        ("struct X { T t; }; table T { 1: X x; };", "make it `vector<T>?`", "T t", "vector<T>? t"),
        ("union U { 1: U u; };", "a member whose type has a `?`",
         "U u; };", "B u; }; struct B { U? u; };"),
    ],
)  # fmt: skip
def test_error_of_a_type_cycle_proposes_a_change_that_compiles(
    text: str, way_out: str, old: str, new: str
) -> None:
    assert way_out in error_of(text).reason
    assert compiled(text.replace(old, new))


def test_enum_members_may_be_constants() -> None:
    ir = compiled("const ONE uint32 = 1;\ntype E = enum { A = ONE; B = F.C; };\n"
                  "type F = enum { C = 7; };")  # fmt: skip
    assert [m["value"]["value"] for m in named(ir, "E")["members"]] == ["1", "7"]
    assert "defined by itself" in error_of("type E = enum { A = E.A; };").reason
