"""The keys of the JSON IR have the order of Fuchsia's compiler."""

from __future__ import annotations

from fidl_support.source import compiled, named
from stretto_fidl.bindings import load

TEXT = """\
library test.example;
using zx;
/// Doc.
type Bits = bits { A = 1; };
const CONST uint8 = 1;
type Enum = enum { A = 1; };
resource_definition Resource : uint32 { properties { subtype Enum; }; };
protocol Protocol { Do(struct { a bool; }) -> (struct { b bool; }) error int32; compose Base; };
protocol Base {};
service Service { base client_end:Base; };
type Struct = resource struct { h zx.Handle; };
type Table = table { 1: a bool; };
type Union = union { 1: a bool; };
type Overlay = strict overlay { 1: a bool; 2: b uint32; };
alias Alias = Struct;
type New = uint8;
"""

KEYS = {
    "Bits": "name naming_context location deprecated maybe_attributes type mask members strict",
    "CONST": "name location deprecated type value",
    "Enum": "name naming_context location deprecated type members strict maybe_unknown_value",
    "Resource": "name location deprecated type properties",
    "Protocol": "name location deprecated openness composed_protocols methods",
    "Service": "name location deprecated members",
    "Struct": "name naming_context location deprecated members resource is_empty_success_struct "
    "type_shape_v2",
    "Table": "name naming_context location deprecated members strict resource type_shape_v2",
    "Union": "name naming_context location deprecated members strict resource is_result "
    "type_shape_v2",
    "Alias": "name location deprecated partial_type_ctor type",
    "New": "name location deprecated type",
}


def test_keys_of_the_document_have_the_order_of_fuchsias_compiler() -> None:
    assert list(compiled(TEXT)) == [
        *["name", "platform", "experiments", "library_dependencies"],
        *["bits_declarations", "const_declarations", "enum_declarations"],
        *["experimental_resource_declarations", "protocol_declarations", "service_declarations"],
        *["struct_declarations", "external_struct_declarations", "table_declarations"],
        *["union_declarations", "overlay_declarations", "alias_declarations"],
        *["new_type_declarations", "declaration_order", "declarations"],
    ]
    assert "overlay_declarations" not in compiled("type A = struct {};")


def test_keys_of_declarations_have_the_order_of_fuchsias_compiler() -> None:
    ir = compiled(TEXT)
    assert {name: " ".join(named(ir, name)) for name in KEYS} == KEYS


def test_keys_of_members_and_methods_have_the_order_of_fuchsias_compiler() -> None:
    ir = compiled(TEXT)
    (method,) = named(ir, "Protocol")["methods"]
    assert list(method) == [
        *["kind", "ordinal", "name", "strict", "location", "deprecated", "has_request"],
        *["maybe_request_payload", "has_response", "maybe_response_payload", "is_composed"],
        *["has_error", "maybe_response_success_type", "maybe_response_err_type"],
    ]
    assert " ".join(named(ir, "Struct")["members"][0]) == (
        "type name location deprecated field_shape_v2"
    )
    assert " ".join(named(ir, "Table")["members"][0]) == "ordinal type name location deprecated"
    assert " ".join(named(ir, "Union")["members"][0]) == "ordinal name type location deprecated"
    assert " ".join(named(ir, "Enum")["members"][0]) == "name location deprecated value"


def test_declarations_are_ordered_by_kind_and_by_dependency() -> None:
    ir = compiled(TEXT)
    names = [name.split("/")[1] for name in ir["declarations"]]
    assert names[:6] == ["Bits", "CONST", "Enum", "Resource", "Base", "Protocol"]
    order = [name.split("/")[1] for name in ir["declaration_order"]]
    assert order.index("Struct") < order.index("Alias")
    assert order.index("Base") < order.index("Protocol")


def test_locations_in_the_ir_count_bytes() -> None:
    ir = compiled('@a("ü") type ABC = struct {}; @doc("äö") type D = struct {};')
    assert [s["location"]["column"] for s in ir["struct_declarations"]] == [15, 50]
    assert ir["struct_declarations"][1]["maybe_attributes"][0]["location"]["length"] == 12


def test_each_member_of_a_generated_union_has_a_line_of_its_own() -> None:
    ir = compiled("protocol P { A() -> (); B() -> () error int32; };")
    lines = [
        m["location"]["line"] for u in ("P_A_Result", "P_B_Result") for m in named(ir, u)["members"]
    ]
    assert lines == [1, 3, 5, 6, 7]


def test_bindings_load_the_written_ir() -> None:
    module = load(
        compiled(TEXT.replace("type Overlay = strict overlay { 1: a bool; 2: b uint32; };\n", ""))
    )
    assert module.Table(a=True).a is True
