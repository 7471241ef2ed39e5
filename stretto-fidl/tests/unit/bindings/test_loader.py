"""Tests of the loader, which makes classes from the JSON IR."""

from __future__ import annotations

from typing import Any

import pytest

from fidl_support.ir import attribute, library, type_ir
from fidl_support.source import compiled
from stretto_fidl import codec
from stretto_fidl.bindings import EVENT, ONE_WAY, TWO_WAY, load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.bindings.ir_attributes import attributes
from stretto_fidl.codec import types
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import FidlError


def method(name: str, ordinal: int, **more: object) -> dict:
    flags = {"has_request": False, "has_response": False, "strict": False, "is_composed": False}
    return {"kind": "method", "name": name, "ordinal": ordinal} | flags | more


METHODS = [
    method(
        "Add",
        11,
        has_request=True,
        has_response=True,
        strict=True,
        maybe_request_payload=type_ir("AddRequest"),
        maybe_response_payload=type_ir("AddResponse"),
        maybe_attributes=[attribute("trace", "maths"), attribute("Doc", " Adds.\n")],
    ),
    method("Ping", 22, has_request=True, is_composed=True),
    method("OnTick", 33, has_response=True, maybe_response_payload=type_ir("AddRequest")),
    method(
        "Divide",
        44,
        has_request=True,
        has_response=True,
        has_error=True,
        maybe_response_payload=type_ir("DivideResult"),
        maybe_response_success_type=type_ir("AddResponse"),
        maybe_response_err_type=type_ir("uint32"),
    ),
]


@pytest.fixture(scope="module")
def names():
    ir = library(
        "test.maths",
        structs={"AddRequest": "a int32, b int32", "AddResponse": "sum int32"},
        unions={
            "DivideResult": "1: response AddResponse, 2: err uint32, 3: framework framework_error"
        },
        enums={"Color": ("strict", "uint8", {"RED": 1})},
        consts={
            "ON": ("bool", "true"),
            "SIZE": ("uint64", 18446744073709551615),
            "RATIO": ("float64", 0.5),
            "NAME": ("string", "x"),
            "FAVOURITE": ("Color", 1),
            "class": ("uint8", 1),
        },
        protocols={"Calculator": []},
    )
    protocol = ir["protocol_declarations"][0]
    protocol["methods"] = [
        {
            key: {**value, "identifier": value["identifier"].replace("test/", "test.maths/")}
            if isinstance(value, dict) and "identifier" in value
            else value
            for key, value in each.items()
        }
        for each in METHODS
    ]
    protocol["maybe_attributes"] = [attribute("discoverable"), attribute("trace", "all")]
    ir["service_declarations"] = [
        {
            "name": "test.maths/Maths",
            "members": [{"name": "main", "type": type_ir("client:Calculator", "test.maths")}],
        }
    ]
    return load(ir)


def test_constants_have_the_values_and_types_of_their_definition(names) -> None:
    assert names.ON is True
    assert names.SIZE == 2**64 - 1
    assert names.RATIO == 0.5
    assert names.NAME == "x"
    assert names.FAVOURITE is names.FAVOURITE == names.Color.RED
    assert isinstance(names.FAVOURITE, names.Color)
    assert names.class_ == 1


class TestLoadedProtocol:
    def test_protocol_has_its_name_openness_transport_and_attributes(self, names) -> None:
        calculator = names.Calculator
        assert calculator.NAME == "test.maths/Calculator"
        assert calculator.OPENNESS == "open"
        assert calculator.TRANSPORT == "Channel"
        assert calculator.ATTRIBUTES == {"discoverable": True, "trace": "all"}
        assert calculator.BY_ORDINAL[22] is calculator.BY_NAME["Ping"]

    def test_two_way_method_has_a_request_and_a_response(self, names) -> None:
        add = names.Calculator.BY_NAME["Add"]
        assert (add.ordinal, add.kind, add.strict, add.composed) == (11, TWO_WAY, True, False)
        assert add.request is names.AddRequest
        assert add.response is names.AddResponse
        assert add.attributes == {"trace": "maths"}
        assert not add.has_result

    def test_one_way_method_has_no_response(self, names) -> None:
        ping = names.Calculator.BY_NAME["Ping"]
        assert (ping.kind, ping.strict, ping.composed) == (ONE_WAY, False, True)
        assert ping.request is None

    def test_event_has_a_response_but_no_request(self, names) -> None:
        tick = names.Calculator.BY_NAME["OnTick"]
        assert tick.kind == EVENT
        assert tick.response is names.AddRequest

    def test_method_with_an_error_has_a_result_union(self, names) -> None:
        divide = names.Calculator.BY_NAME["Divide"]
        assert divide.has_result
        assert divide.response is names.DivideResult
        assert divide.success is names.AddResponse
        assert divide.error is types.UINT32
        reply = names.DivideResult(framework=-2)
        data, _ = codec.encode(reply)
        assert codec.decode(divide.response, data) == reply

    def test_loaded_service_lists_its_members(self, names) -> None:
        assert names.Maths.MEMBERS == {"main": "test.maths/Calculator"}


def test_types_of_a_dependency_are_used() -> None:
    base = load(library("base", structs={"Point": "x int32"}))
    user = load(library("user", structs={"Line": "from base/Point, to base/Point?"}), [base])
    line = user.Line(from_=base.Point(x=1), to=base.Point(x=2))
    data, _ = codec.encode(line)
    assert codec.decode(user.Line, data) == line


def test_missing_dependency_is_named_in_the_error() -> None:
    user = load(library("user", structs={"Line": "from base/Point"}))
    with pytest.raises(FidlError, match=r"user mentions base/Point, .* pass it as a dependency"):
        user.Line(from_=1)


def test_doc_attribute_becomes_the_docstring() -> None:
    ir = library(structs={"Point": "x int32"})
    ir["struct_declarations"][0]["maybe_attributes"] = [attribute("doc", " A point.\n\n Really.\n")]
    point = load(ir).Point
    assert point.__doc__ == "A point.\n\nReally."
    assert point.__module__ == "fidl.test"


def test_loader_finds_the_payload_of_a_method_by_the_name_of_its_struct() -> None:
    old = method("Say", 5, has_request=True, maybe_request_payload="test/Words")
    names = load(library(structs={"Words": "text string"}, protocols={"Talk": [old]}))
    assert names.Talk.BY_NAME["Say"].request is names.Words


def test_loader_accepts_channel_ends_in_the_form_of_older_ir() -> None:
    ir = library(structs={"Ends": ""}, protocols={"Talk": []})
    ir["struct_declarations"][0]["members"] = [
        {
            "name": "client",
            "type": {"kind": "identifier", "identifier": "test/Talk", "nullable": True},
        },
        {"name": "server", "type": {"kind": "request", "subtype": "test/Talk", "nullable": False}},
    ]
    client, server = load(ir).Ends.TYPE.members
    assert (client.type.role, client.type.optional) == ("client", True)
    assert (server.type.role, server.type.protocol) == ("server", "test/Talk")


def test_interface_declarations_are_read_as_protocols() -> None:
    ir = library(structs={"AddRequest": "a uint8"}, protocols={"Talk": [METHODS[1]]})
    ir["interface_declarations"] = ir.pop("protocol_declarations")
    assert load(ir).Talk.BY_NAME["Ping"].ordinal == 22


def test_resources_are_recognised_in_older_ir() -> None:
    ir = library(tables={"A": "1: a uint8", "B": "1: a uint8", "C": "1: a uint8"})
    for declaration, shape in zip(
        ir["table_declarations"],
        [{"is_resource": True}, {"is_resource": False, "max_handles": 1}, {"max_handles": 2}],
        strict=True,
    ):
        declaration.pop("resource", None)
        declaration["type_shape_v1"] = shape
    names = load(ir)
    assert [each.TYPE.resource for each in (names.A, names.B, names.C)] == [True, False, True]


INJECTION = "S:\n import os\nclass X"


@pytest.mark.parametrize(
    "path",
    [
        ("name",),
        ("struct_declarations", 0, "name"),
        ("struct_declarations", 0, "members", 0, "name"),
        ("struct_declarations", 1, "members", 0, "type", "identifier"),
        ("enum_declarations", 0, "name"),
        ("enum_declarations", 0, "members", 0, "name"),
        ("protocol_declarations", 0, "name"),
        ("protocol_declarations", 0, "methods", 0, "name"),
        ("const_declarations", 0, "name"),
    ],
)
@pytest.mark.parametrize("name", [INJECTION, "test/a-b", "../x", "test/S/T", "", "test/_b", "é", 5])
def test_invalid_names_in_the_ir_are_refused(path: tuple, name: object) -> None:
    text = (
        "library test; type S = struct { e E; }; type E = enum { A = 1; }; const C uint8 = 1;"
        "protocol P { M(struct { a bool; }); };"
    )
    ir = compile_sources({"a": text})
    assert {*vars(load(ir))} >= {"S", "E", "C", "P"}
    *way, last = path
    node: Any = ir
    for step in way:
        node = node[step]
    node[last] = name
    for read in (load, generate):
        with pytest.raises(FidlError):
            read(ir)


@pytest.mark.parametrize("kind", ["struct", "enum", "union"])
def test_two_members_with_the_same_name_are_refused(kind: str) -> None:
    text = (
        "library test; type S = struct { a bool; b bool; }; type E = enum { A = 1; B = 2; };"
        "type U = union { 1: a bool; 2: b bool; };"
    )
    ir = compile_sources({"a": text})
    first, second = ir[f"{kind}_declarations"][0]["members"]
    second["name"] = first["name"]
    with pytest.raises(FidlError, match="two members of one name"):
        load(ir)


@pytest.mark.parametrize("ir", [{}, [], {"name": "a", "struct_declarations": [5]}, None, "text"])
def test_json_other_than_ir_is_refused(ir: Any) -> None:
    for read in (load, generate):
        with pytest.raises(FidlError, match="no JSON IR"):
            read(ir)


def test_members_named_like_internal_attributes_are_renamed() -> None:
    text = (
        "library test; type S = struct { TYPE uint8; }; "
        "type U = union { 1: TYPE uint8; 2: mro bool; };"
        "type E = enum { TYPE = 1; }; type FIDL_LIBRARY = table { 1: TYPE bool; };"
    )
    ir = compile_sources({"a": text})
    loaded, generated = load(ir), {}
    exec(generate(ir)["test.py"], generated)
    for names in (vars(loaded), generated):
        assert names["S"](TYPE_=3).TYPE_ == 3
        assert names["U"](TYPE_=3).TYPE_ == 3
        assert names["U"](mro=True).mro is True
        assert names["E"].TYPE_ == 1
        assert names["FIDL_LIBRARY_"](TYPE_=True).TYPE_ is True
        assert names["FIDL_LIBRARY"].name == "test"


def test_new_type_is_read_as_its_underlying_type() -> None:
    ir = library(structs={"Use": "id Id"})
    ir["new_type_declarations"] = [{"name": "test/Id", "type": type_ir("uint64")}]
    assert load(ir).Use.TYPE.members[0].type is types.UINT64


def test_ir_with_a_new_type_of_another_library_is_refused_with_advice() -> None:
    sources = "library b; using a; type S = struct { t a.Token; };"
    ir = compiled(sources, a="library a; type Token = string:100;")
    for read in (load, generate):
        with pytest.raises(FidlError, match=r"a/Token, a new type of another.*mention an alias"):
            read(ir)
    ir = compiled(sources, a="library a; alias Token = string:100;")
    assert load(ir).S(t="x").t == "x"


def test_reserved_members_of_tables_are_omitted() -> None:
    ir = library(tables={"T": "1: a uint8, 3: b uint8"})
    ir["table_declarations"][0]["members"].insert(1, {"ordinal": 2, "reserved": True})
    assert load(ir).T.__slots__ == ("a", "b")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overlay_declarations": [{}]}, "overlays"),
        ({"struct_declarations": [{"name": "test/S", "members": [
            {"name": "x", "type": {"kind": "pointer"}}]}]}, "unknown kind pointer"),
    ],
)  # fmt: skip
def test_unknown_kinds_in_the_ir_are_refused(change: dict, message: str) -> None:
    with pytest.raises(FidlError, match=message):
        load(library() | change)


@pytest.mark.parametrize(
    ("attribute_ir", "expected"),
    [
        (attribute("trace", "cat"), {"trace": "cat"}),
        (attribute("trace", ""), {"trace": ""}),
        ({"name": "Trace", "value": ""}, {"trace": ""}),
        ({"name": "Discoverable", "value": ""}, {"discoverable": True}),
        (attribute("discoverable"), {"discoverable": True}),
        ({"name": "Doc", "value": "text"}, {"doc": "text"}),
        ({"name": "ForDeprecatedCBindings"}, {"for_deprecated_cbindings": True}),
        ({"name": "on", "arguments": [{"name": "value", "type": "bool",
          "value": {"value": "false"}}]}, {"on": False}),
        ({"name": "a", "arguments": [{"name": "x", "value": {"value": "1"}},
          {"name": "y", "value": {"value": "2"}}]}, {"a": {"x": "1", "y": "2"}}),
    ],
)  # fmt: skip
def test_attributes_of_the_ir_are_read_with_their_arguments(
    attribute_ir: dict, expected: dict
) -> None:
    assert attributes({"maybe_attributes": [attribute_ir]}) == expected


@pytest.mark.parametrize("where", ["protocol", "method"])
def test_trace_attribute_without_a_category_is_refused(where: str) -> None:
    ir = compile_sources({"a": "library test; closed protocol P { strict M(); };"})
    (protocol,) = ir["protocol_declarations"]
    element = protocol if where == "protocol" else protocol["methods"][0]
    for wrong in (attribute("trace"), {"name": "trace", "arguments": [
        {"name": "category", "value": {"value": "x"}}]}):  # fmt: skip
        element["maybe_attributes"] = [wrong]
        for make in (load, generate):
            with pytest.raises(FidlError, match=r"`@trace` of .* takes one string"):
                make(ir)
