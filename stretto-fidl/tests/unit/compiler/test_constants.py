from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of, named

TYPES = (
    "type E = strict enum : uint16 { A = 1; B = 300; };\n"
    "type B = strict bits : uint8 { X = 1; Y = 2; };\n"
    "type F = strict enum { A = 1; };\n"
)


def value(type_: str, constant: str, more: str = "") -> str:
    ir = compiled(f"{TYPES}{more}const K {type_} = {constant};")
    return str(named(ir, "K")["value"]["value"])


@pytest.mark.parametrize(
    ("type_", "constant", "expected"),
    [
        ("uint8", "255", "255"),
        ("int8", "-128", "-128"),
        ("uint64", "0xffffffffffffffff", "18446744073709551615"),
        ("uint8", "0b101", "5"),
        ("int16", "-0x10", "-16"),
        ("float32", "1.5", "1.5"),
        ("float64", "3.14159265", "3.14159"),
        ("float64", "2", "2"),
        ("float64", "1.0e-7", "1e-07"),
        ("bool", "true", "true"),
        ("string", '"a"', "a"),
        ("string:3", '"äb"', "äb"),
        ("E", "E.B", "300"),
        ("uint16", "E.B", "300"),
        ("int64", "E.B", "300"),
        ("B", "B.X | B.Y", "3"),
        ("B", "0", "0"),
        ("uint8", "1 | (2 | 4) | 8", "15"),
        ("uint32", "test.example.E.B", "300"),
    ],
)
def test_constant_has_the_expected_value(type_: str, constant: str, expected: str) -> None:
    assert value(type_, constant) == expected


def test_constants_may_refer_to_constants() -> None:
    more = "const L uint8 = M;\nconst M uint8 = 7;\nconst N uint8 = 8;\n"
    assert value("uint16", "L", more) == "7"
    assert value("uint8", "L | N", more) == "15"
    assert value("E", "O", more + "const O E = E.A;\n") == "1"
    assert value("bool", "P", more + "const P bool = false;\n") == "false"


def test_ir_has_the_kind_value_and_expression_of_constants() -> None:
    ir = compiled(f"{TYPES}const K uint8 = 0x10;\nconst L uint8 = K;\nconst M B = B.X | B.Y;")
    assert [named(ir, name)["value"] for name in "KLM"] == [
        {
            "kind": "literal",
            "value": "16",
            "expression": "0x10",
            "literal": {"kind": "numeric", "value": "16", "expression": "0x10"},
        },
        {"kind": "identifier", "value": "16", "expression": "K", "identifier": "test.example/K"},
        {"kind": "binary_operator", "value": "3", "expression": "B.X | B.Y"},
    ]


@pytest.mark.parametrize(
    ("type_", "constant", "reason"),
    [
        ("uint8", "256", "256 doesn't fit in `uint8`: 0 to 255"),
        ("uint8", "-1", "doesn't fit"),
        ("int8", "128", "doesn't fit"),
        ("uint64", "0x10000000000000000", "doesn't fit"),
        ("uint8", "1.0", "isn't an integer"),
        ("uint8", "1_000", "isn't an integer"),
        ("uint8", "0x", "isn't an integer"),
        ("uint8", "9" * 500, "fits no type"),
        ("float32", "3.5e38", "doesn't fit in `float32`"),
        ("float64", "1.0e999", "doesn't fit in `float64`"),
        ("float64", "1.", "isn't a number"),
        ("uint8", '"a"', "isn't a value of type `uint8`"),
        ("bool", "1", "isn't a value of type `bool`"),
        ("string", "1", "isn't a value of type `string`"),
        ("string:2", '"äb"', "3 bytes long, but its type allows 2"),
        ("E", "1", "isn't a value of type"),
        ("B", "1", "isn't a value of type"),
        ("E", "F.A", "is of type `test.example/F`"),
        ("uint8", "E.B", "300 doesn't fit"),
        ("E", "E.A | E.B", "`|` works on integers and bits"),
        ("string", '"a" | "b"', "`|` works on"),
        ("uint8", "E.C", "`E` has no member `C`"),
        ("uint8", "Missing", "cannot find `Missing`"),
        ("uint8", "no.such.THING", "is library `no.such` imported"),
        ("uint8", "E", "`E` is an enum, no constant"),
        ("uint8", "K", "defined by itself"),
        ("bool", "E.A", "is of type `uint16`"),
        ("float32", "E.A", "is of type"),
        ("vector<uint8>", "1", "a constant is a number"),
        ("string:optional", '"a"', "a constant is"),
    ],
)
def test_invalid_constants_are_refused(type_: str, constant: str, reason: str) -> None:
    assert reason in error_of(f"{TYPES}const K {type_} = {constant};").reason


def test_constants_that_refer_to_each_other_are_refused() -> None:
    assert "defined by itself" in error_of("const A uint8 = B;\nconst B uint8 = A;").reason


def test_long_chains_of_constants_are_refused() -> None:
    chain = [f"const C{i} uint8 = C{i + 1};" for i in range(1000)]
    assert "steps" in error_of("\n".join([*chain, "const C1000 uint8 = 1;"])).reason
    chain[20:] = ["const C20 uint8 = 5;"]
    assert named(compiled("\n".join(chain)), "C0")["value"]["value"] == "5"
