"""The syntax before RFC-0050 compiles to the same IR as the current syntax."""

from __future__ import annotations

from typing import Any

import pytest

from fidl_support.source import compiled, error_of, member_type, named
from stretto_fidl.compiler import compile_sources

PAIRS = [
    (
        "struct S { int32 a; string:5? b; };",
        "type S = struct { a int32; b string:<5, optional>; };",
    ),
    ("struct S { array<uint8>:4 a; };", "type S = struct { a array<uint8, 4>; };"),
    ("struct S { vector<uint8>:4? a; };", "type S = struct { a vector<uint8>:<4, optional>; };"),
    ("struct S { S? next; };", "type S = struct { next box<S>; };"),
    ("table T { 1: bool a; 2: reserved; };", "type T = table { 1: a bool; 2: reserved; };"),
    ("strict union U { 1: bool a; };", "type U = strict union { 1: a bool; };"),
    ("xunion U { 1: bool a; };", "type U = union { 1: a bool; };"),
    ("enum E : uint8 { A = 1; };", "type E = enum : uint8 { A = 1; };"),
    ("bits B { A = 1; };", "type B = bits { A = 1; };"),
    ('const string:4 S = "ab";', 'const S string:4 = "ab";'),
    ("using X = vector<uint8>;", "alias X = vector<uint8>;"),
    (
        "alias X = vector<uint8>;\nstruct S { X a; };",
        "alias X = vector<uint8>;\ntype S = struct { a X; };",
    ),
    (
        "protocol P { M(int32 a, string b) -> (bool c); };",
        "closed protocol P { strict M(struct { a int32; b string; }) -> (struct { c bool; }); };",
    ),
    (
        "protocol P { M() -> () error int32; -> E(int32 a); N(); };",
        """closed protocol P {
               strict M() -> () error int32; strict -> E(struct { a int32; }); strict N();
        };""",
    ),
    (
        "protocol P {};\nprotocol Q { compose P; M(P p, request<P>? r); };",
        """closed protocol P {};
        closed protocol Q {
            compose P;
            strict M(resource struct { p client_end:P; r server_end:<P, optional>; });
        };""",
    ),
    (
        "protocol P {};\nservice S { P p; };",
        "closed protocol P {};\nservice S { p client_end:P; };",
    ),
    (
        'protocol P { [Trace = "c", Transitional] M(); };',
        'closed protocol P { @trace("c") @transitional strict M(); };',
    ),
    ("/// Text.\nstruct S {};", "/// Text.\ntype S = struct {};"),
]


def without_places(node: Any) -> Any:
    """Return the IR without locations, and without the expressions of constants."""
    if isinstance(node, dict):
        return {
            k: without_places(v) for k, v in node.items() if k not in ("location", "expression")
        }
    if isinstance(node, list):
        return [without_places(each) for each in node]
    return node


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_old_and_new_syntax_give_the_same_ir(old: str, new: str) -> None:
    assert without_places(compiled(old)) == without_places(compiled(new))


def test_old_attribute_names_are_converted_to_the_current_spelling() -> None:
    ir = compiled('[MaxBytes = "5", Trace = "a"]\nprotocol P {};')
    assert [a["name"] for a in named(ir, "P")["maybe_attributes"]] == ["max_bytes", "trace"]


def test_types_with_handles_are_resources_in_the_old_syntax() -> None:
    ir = compiled(
        "struct A { B b; };\nstruct B { vector<C> c; };\nstruct C { handle h; D? d; };\n"
        "struct D { uint8 x; };"
    )
    assert [named(ir, name)["resource"] for name in "ABCD"] == [True, True, True, False]


def test_handles_of_the_old_syntax_have_types_and_rights() -> None:
    ir = compiled(
        "using zx;\nstruct S { handle a; handle<vmo>? b; "
        "handle<channel, zx.rights.READ | zx.rights.WRITE> c; };"
    )
    types = [member_type(ir, "S", name) for name in "abc"]
    keys = ("obj_type", "subtype", "rights", "nullable", "resource_identifier")
    assert [[type_[key] for key in keys] for type_ in types] == [
        [0, "handle", 0x80000000, False, "zx/Handle"],
        [3, "vmo", 0x80000000, True, "zx/Handle"],
        [4, "channel", 12, False, "zx/Handle"],
    ]


def test_names_of_the_old_library_zx_are_found() -> None:
    ir = compiled("using zx;\nstruct S { zx.handle:VMO a; zx.status s; };")
    assert member_type(ir, "S", "a")["obj_type"] == 3
    assert member_type(ir, "S", "s")["subtype"] == "int32"


def test_file_valid_in_both_syntaxes_is_read_in_the_syntax_of_its_library() -> None:
    either = "library test.example;\nprotocol P { M() -> () error int32; };"
    old = "library test.example;\nstruct S { int32 a; };"
    new = "library test.example;\ntype S = struct { a int32; };"
    facts = []
    for sources in ({"a": either, "b": old}, {"b": old, "a": either}, {"a": either, "b": new}):
        (protocol,) = compile_sources(sources)["protocol_declarations"]
        facts.append((protocol["openness"], protocol["methods"][0]["strict"]))
    assert facts == [("closed", True), ("closed", True), ("open", False)]
    other = "library test.other;\nstruct S { int32 a; };"
    ir = compile_sources({"a": either}, dependencies={"b": other})
    assert ir["protocol_declarations"][0]["openness"] == "open"


def test_old_enum_that_uses_the_highest_value_is_strict() -> None:
    text = "%s enum E : int8 { A = 1; MAX = 0x7f; };\nenum F : int8 { A = 1; };\n"
    ir = compiled(text % "")
    assert (named(ir, "E")["strict"], named(ir, "F")["strict"]) == (True, False)
    assert "the value for unknown members" in error_of(text % "flexible").reason
    assert "maybe_unknown_value" not in named(ir, "E")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("struct S { handle<nothing> h; };", "isn't a kind of handle"),
        ("struct S { uint8? a; };", "can't be optional"),
        ("[Foo = 5] protocol P {};", "expected a string"),
        ("protocol P { 1: M(int32 a); };", "no ordinals since 2019"),
        ("struct S { int32 a; };\nopen struct T {};", "expected a declaration"),
        ("struct S { request<uint8> r; };", "must be a protocol"),
    ],
)  # fmt: skip
def test_invalid_old_definitions_are_refused(text: str, reason: str) -> None:
    assert reason in error_of(text).reason
