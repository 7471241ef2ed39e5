from __future__ import annotations

from typing import Any

import pytest

from fidl_support.source import compiled, error_of, member_type, named

TYPES = (
    "using zx;\nprotocol P {};\ntype S = struct { a uint8; };\ntype T = table {};\n"
    "type U = union {};\ntype E = enum {};\nconst N uint32 = 3;\n"
    "alias Bytes = vector<uint8>;\nalias Vmo = zx.Handle:VMO;\n"
)


def use(type_: str) -> dict[str, Any]:
    ir = compiled(f"{TYPES}type X = resource struct {{ m {type_}; h zx.Handle; }};")
    found = member_type(ir, "X", "m")
    found.pop("type_shape_v2")
    return found


def test_primitive_types_are_resolved() -> None:
    names = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    for name in [*names, "float32", "float64"]:
        assert use(name) == {"kind_v2": "primitive", "subtype": name}
    assert use("byte")["subtype"] == "uint8"


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("string", {"kind_v2": "string", "nullable": False}),
        ("string:5", {"kind_v2": "string", "maybe_element_count": 5, "nullable": False}),
        ("string:MAX", {"kind_v2": "string", "nullable": False}),
        ("string:<N, optional>", {"kind_v2": "string", "maybe_element_count": 3, "nullable": True}),
        ("string_array<4>", {"kind_v2": "string_array", "element_count": 4}),
        ("S", {"kind_v2": "identifier", "identifier": "test.example/S", "nullable": False}),
        ("box<S>", {"kind_v2": "identifier", "identifier": "test.example/S", "nullable": True}),
        ("U:optional", {"kind_v2": "identifier", "identifier": "test.example/U", "nullable": True}),
        (
            "client_end:<P, optional>",
            {
                "kind_v2": "endpoint",
                "role": "client",
                "protocol": "test.example/P",
                "nullable": True,
                "protocol_transport": "Channel",
            },
        ),
        (
            "zx.Handle:<VMO, zx.Rights.READ | zx.Rights.WRITE, optional>",
            {
                "kind_v2": "handle",
                "obj_type": 3,
                "subtype": "vmo",
                "rights": 12,
                "nullable": True,
                "resource_identifier": "zx/Handle",
            },
        ),
    ],
)
def test_type_is_resolved_to_the_expected_ir(type_: str, expected: dict[str, Any]) -> None:
    assert use(type_) == expected
    assert list(use(type_)) == list(expected)


def test_element_types_and_counts_are_resolved() -> None:
    vector = use("vector<array<uint8, N>>:<2, optional>")
    assert (vector["kind_v2"], vector["maybe_element_count"], vector["nullable"]) == (
        "vector",
        2,
        True,
    )
    array = vector["element_type"]
    assert (array["kind_v2"], array["element_count"]) == ("array", 3)
    assert array["element_type"]["subtype"] == "uint8"
    assert use("bytes:4")["element_type"]["subtype"] == "uint8"


def test_member_with_an_alias_names_the_alias_in_the_ir() -> None:
    ir = compiled(
        f"{TYPES}type X = resource struct {{ a Bytes; b Bytes:<9, optional>; c vector<Bytes>; "
        "d Vmo:zx.Rights.READ; };"
    )
    a, b, c, d = named(ir, "X")["members"]
    name = "test.example/Bytes"
    alias = "experimental_maybe_from_alias"
    assert a[alias] == {"name": name, "args": [], "nullable": False}
    assert (b[alias]["nullable"], b[alias]["maybe_size"]["value"]) == (True, "9")
    assert (b["type"]["nullable"], b["type"]["maybe_element_count"]) == (True, 9)
    assert alias not in c
    assert c["type"][alias] == {"name": name, "args": [], "nullable": False}
    assert (d[alias]["handle_rights"]["value"], d["type"]["rights"]) == ("4", 4)


def test_alias_has_the_type_and_the_size_of_its_definition() -> None:
    ir = compiled("alias X = vector<string:3>:<5, optional>;\nalias Y = X;")
    made_of = named(ir, "X")["partial_type_ctor"]
    assert (made_of["name"], made_of["nullable"], made_of["maybe_size"]["value"]) == (
        "vector",
        True,
        "5",
    )
    (inner,) = made_of["args"]
    assert (inner["name"], inner["maybe_size"]["value"]) == ("string", "3")
    assert named(ir, "Y")["partial_type_ctor"] == {"name": "vector", "args": [], "nullable": False}
    assert named(ir, "Y")["experimental_maybe_from_alias"]["name"] == "test.example/X"


def test_ir_of_a_member_names_the_new_type_of_the_member() -> None:
    ir = compiled("type Id = uint64;\ntype S = struct { a vector<Id>:2; };")
    assert ir["new_type_declarations"][0]["type"]["subtype"] == "uint64"
    vector = member_type(ir, "S", "a")
    assert vector["element_type"]["identifier"] == "test.example/Id"
    assert vector["type_shape_v2"]["max_out_of_line"] == 16


def test_user_defined_types_hide_builtin_types_of_the_same_name() -> None:
    ir = compiled(
        "type string = struct {};\nconst optional uint32 = 7;\n"
        "type X = struct { a string; b vector<uint8>:optional; };"
    )
    assert member_type(ir, "X", "a")["identifier"] == "test.example/string"
    assert member_type(ir, "X", "b")["maybe_element_count"] == 7


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("Nothing", "cannot find `Nothing`"),
        ("lib.Nothing", "is library `lib` imported"),
        ("N", "`N` is a const, no type"),
        ("P", "write `client_end:P`"),
        ("vector", "takes 1 parameters"),
        ("vector<uint8, 4>", "takes 1 parameters"),
        ("vector<4>", "must be a type"),
        ("array<uint8>", "takes 2 parameters"),
        ("array<uint8, 0>", "at least 1"),
        ("array<uint8, S>", "is a struct, no constant"),
        ("array<uint8, vector<uint8>>", "must be a constant"),
        ("array<uint8, 4>:optional", "can't be optional"),
        ("array<uint8, 4>:5", "takes no further constraint"),
        ("uint8<4>", "takes no parameters"),
        ("S<uint8>", "takes no parameters"),
        ("uint8:optional", "can't be optional"),
        ("S:optional", "write `box<S>`"),
        ("T:optional", "can't be optional"),
        ("E:optional", "can't be optional"),
        ("box<uint8>", "only structs"),
        ("box<U>", "write `U:optional`"),
        ("box<box<S>>", "can't be optional as well"),
        ("string:<optional, optional>", "optional already"),
        ("string:<5, 6>", "has a bound already"),
        ("string:-1", "doesn't fit in `uint32`"),
        ('string:"5"', "isn't a value of type `uint32`"),
        ("client_end", "needs a protocol"),
        ("client_end:S", "isn't a protocol"),
        ("client_end:Nothing", "cannot find `Nothing`"),
        ("client_end:<P, P>", "its protocol is known"),
        ("zx.Handle:NOTHING", "isn't a subtype of this resource"),
        ("zx.Handle:<VMO, 5>", "isn't a value of type `zx/Rights`"),
        ("zx.Handle:<VMO, zx.Rights.READ, zx.Rights.WRITE>", "are given already"),
        ("Vmo:CHANNEL", "kind of this handle is given already"),
        ("handle", "cannot find `handle`"),
    ],
)
def test_invalid_types_are_refused(type_: str, reason: str) -> None:
    text = f"{TYPES}type X = resource struct {{ m {type_}; h zx.Handle; }};"
    assert reason in error_of(text).reason


def test_generated_name_of_a_layout_can_not_be_used() -> None:
    text = "type A = struct { inner struct {}; };\ntype B = struct { b Inner; };"
    assert "generated name of a layout" in error_of(text).reason


def test_cyclic_and_long_chains_of_aliases_are_refused() -> None:
    assert "defined by itself" in error_of("alias A = B;\nalias B = vector<A>;").reason
    chain = "\n".join(f"alias A{i} = vector<A{i + 1}>;" for i in range(1000))
    assert "steps" in error_of(chain + "\nalias A1000 = uint8;").reason


def test_nesting_through_aliases_is_bounded() -> None:
    chain = ["alias A0 = uint8;", *(f"alias A{i + 1} = vector<A{i}>;" for i in range(100))]
    error = error_of("\n".join(chain))
    assert (error.reason.split(":")[0], error.line) == ("more than 64 types in each other", 66)


def test_chains_of_new_types_are_bounded() -> None:
    chain = ["type A0 = uint8;", *(f"type A{i + 1} = A{i};" for i in range(5000))]
    assert "nested too deeply" in error_of("\n".join(chain)).reason
