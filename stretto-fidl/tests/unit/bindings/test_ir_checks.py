from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from stretto_fidl import codec
from stretto_fidl.bindings import load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import FidlError

IR = compile_sources(
    {
        "test.fidl": """\
library test;
type E = enum : uint8 { A = 1; };
type B = bits : uint8 { C = 1; };
type S = struct { a array<uint8, 2>; v vector<uint8>:3; f float32; };
type T = table { 1: a bool; 2: b bool; };
type U = union { 1: a bool; 2: b bool; };
const NUMBER uint8 = 1;
const REAL float64 = 1.5;
const LETTER E = E.A;
@note("x") closed protocol P { strict M() -> (); strict N(); };
service V { p client_end:P; };
"""
    }
)


def changed(*path: Any) -> dict[str, Any]:
    """Return the IR with one value replaced; the arguments are its path and the new value."""
    ir = copy.deepcopy(IR)
    *way, last, value = path
    node: Any = ir
    for step in way:
        node = node[step]
    node[last] = value
    return ir


def kind(name: str, *path: Any) -> tuple[Any, ...]:
    return (f"{name}_declarations", 0, *path)


def refuses(ir: Any, message: str) -> None:
    makers: tuple[Callable[[Any], Any], ...] = (load, generate)
    for make in makers:
        with pytest.raises(FidlError, match=message):
            make(ir)


VALUE = ("members", 0, "value", "value")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("name",), "a_b", "isn't a valid FIDL library name"),
        (kind("struct", "name"), "other/S", "isn't of the library test"),
        (kind("struct", "name"), "test/U", "defines test/U twice"),
        (kind("enum", "type"), "float32", "no type of integers"),
        (kind("enum", "type"), "bool", "no type of integers"),
        (kind("enum", "type"), "word", "no type of integers"),
        (kind("enum", *VALUE), "256", r"test/E\.A is 256, not one of 0 to 255"),
        (kind("enum", *VALUE), "one", r"test/E\.A isn't a whole number, but 'one'"),
        (kind("enum", *VALUE), 1.5, "isn't a whole number"),
        (kind("enum", *VALUE), True, "isn't a whole number"),
        (kind("enum", *VALUE), "9" * 5000, "isn't a whole number"),
        (kind("bits", *VALUE), "-1", "not one of 0 to 255"),
        (kind("table", "members", 1, "ordinal"), 1, "two members of one ordinal"),
        (kind("table", "members", 1, "ordinal"), 0, "not one of 1 to 8192"),
        (kind("table", "members", 1, "ordinal"), 1 << 32, "not one of 1 to 8192"),
        (kind("table", "members", 1, "ordinal"), "second", "the ordinal of b isn't a whole number"),
        (kind("union", "members", 1, "ordinal"), 1, "two members of one ordinal"),
        (kind("union", "members", 1, "ordinal"), 1 << 64, "not one of 1 to"),
        (kind("struct", "members", 0, "type", "element_count"), -1, "a number of elements is -1"),
        (kind("struct", "members", 1, "type", "maybe_element_count"), 1 << 32, "of elements"),
        (("const_declarations", 1, "value", "value"), "256", "a constant of the type uint8 is 256"),
        (kind("const", "type"), {"kind": "identifier", "identifier": "test/S"}, "has none"),
        (("const_declarations", 2, "value", "value"), "1e400", "no constant of FIDL"),
        (("const_declarations", 2, "value", "value"), "nan", "no constant of FIDL"),
        (kind("protocol", "methods", 0, "ordinal"), 0, "the ordinal of M is 0"),
        (kind("protocol", "methods", 0, "ordinal"), "x", "the ordinal of M isn't a whole number"),
        (kind("protocol", "methods", 0, "name"), "N", "two methods of one name"),
        (kind("protocol", "openness"), math.inf, "neither open nor ajar nor closed"),
        (kind("service", "members", 0, "name"), "a-b", "isn't a valid FIDL name"),
        (kind("service", "members", 0, "type", "protocol"), "P", "isn't a valid FIDL name"),
    ],
)  # fmt: skip
def test_invalid_values_in_the_ir_are_refused(
    path: tuple[Any, ...], value: Any, message: str
) -> None:
    refuses(changed(*path, value), message)


def test_two_methods_with_the_same_ordinal_are_refused() -> None:
    ordinal = IR["protocol_declarations"][0]["methods"][1]["ordinal"]
    ir = changed(*kind("protocol", "methods", 0, "ordinal"), ordinal)
    refuses(ir, "two methods of one ordinal")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), 5),
        (kind("struct", "members", 0, "type"), {}),
        (kind("struct", "members", 0, "type"), None),
        (kind("protocol", "methods"), None),
        (("struct_declarations",), [5]),
        (("struct_declarations",), 5),
    ],
)
def test_ir_values_of_a_wrong_json_type_are_refused(path: tuple[Any, ...], value: Any) -> None:
    refuses(changed(*path, value), "no JSON IR")


@pytest.mark.parametrize("value", [math.inf, [math.nan], "\ud800", 5, None])
def test_attribute_values_other_than_strings_are_converted_to_text(value: Any) -> None:
    (argument,) = IR["protocol_declarations"][0]["maybe_attributes"][0]["arguments"]
    ir = changed(*kind("protocol", "maybe_attributes", 0, "arguments", 0), argument | {
        "value": {"value": value}})  # fmt: skip
    generated: dict[str, Any] = {}
    exec(generate(ir)["test.py"], generated)
    assert generated["P"].ATTRIBUTES == load(ir).P.ATTRIBUTES == {"note": str(value)}


def test_deeply_nested_types_are_refused() -> None:
    type_: Any = {"kind": "primitive", "subtype": "uint8"}
    for _ in range(900):
        type_ = {"kind": "vector", "element_type": type_, "nullable": False}
    refuses(changed(*kind("struct", "members", 0, "type"), type_), "64 levels")


def test_new_types_that_name_each_other_are_refused() -> None:
    names = ("test/M", "test/N")
    types = [{"kind": "identifier", "identifier": name} for name in names]
    ir = changed(*kind("struct", "members", 0, "type"), types[0])
    ir["new_type_declarations"] = [
        {"name": name, "type": type_} for name, type_ in zip(names, types[::-1], strict=True)
    ]
    refuses(ir, "64 levels")


def test_valid_ir_is_accepted() -> None:
    assert load(IR).LETTER.name == "A"
    value = load(IR).S(a=b"12", v=b"", f=1.5)
    assert codec.decode(type(value), codec.encode(value)[0]) == value
