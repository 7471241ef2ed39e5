from __future__ import annotations

from typing import Any

import pytest

from fidl_support.source import compiled, error_of, named
from stretto_fidl.ordinals import ordinal_of


def methods(text: str, protocol: str = "P") -> dict[str, dict[str, Any]]:
    return {m["name"]: m for m in named(compiled(text), protocol)["methods"]}


def payload(method: dict[str, Any], key: str) -> str | None:
    type_ = method.get(key)
    return None if type_ is None else type_.get("identifier", type_.get("subtype"))


def test_methods_have_the_kind_and_payloads_of_their_definition() -> None:
    found = methods(
        "protocol P { A(); strict B() -> (); -> C(); strict D(T) -> (T); };\ntype T = table {};"
    )
    facts = {
        name: (m["kind"], m["strict"], m["has_request"], m["has_response"], m["has_error"])
        for name, m in found.items()
    }
    assert facts == {
        "A": ("oneway", False, True, False, False),
        "B": ("twoway", True, True, True, False),
        "C": ("event", False, False, True, False),
        "D": ("twoway", True, True, True, False),
    }
    assert payload(found["D"], "maybe_request_payload") == "test.example/T"
    assert "maybe_request_payload" not in found["A"]
    assert "maybe_response_payload" not in found["B"]


def test_anonymous_payloads_are_named_after_protocol_and_method() -> None:
    found = methods(
        "protocol P { strict do_it(struct { a bool; }) -> (struct { a bool; });"
        " -> OnIt(struct { a bool; }); };"
    )
    assert payload(found["do_it"], "maybe_request_payload") == "test.example/PDoItRequest"
    assert payload(found["do_it"], "maybe_response_payload") == "test.example/PDoItResponse"
    assert payload(found["OnIt"], "maybe_response_payload") == "test.example/POnItRequest"


RESULTS = {
    "strict M() -> () error int32;": ["response:P_M_Response", "err:int32"],
    "strict M() -> (T) error E;": ["response:T", "err:E"],
    "strict M() -> (struct { a bool; }) error enum {};": ["response:P_M_Response", "err:P_M_Error"],
    "M() -> ();": ["response:P_M_Response", "framework_err:framework_error"],
    "M() -> (T) error uint32;": ["response:T", "err:uint32", "framework_err:framework_error"],
}


@pytest.mark.parametrize("method", RESULTS)
def test_result_union_has_a_member_for_each_outcome(method: str) -> None:
    ir = compiled(f"protocol P {{ {method} }};\ntype T = table {{}};\ntype E = enum : int32 {{}};")
    result = named(ir, "P_M_Result")
    members = [
        f"{m['name']}:{(payload(m, 'type') or '').removeprefix('test.example/')}"
        for m in result["members"]
    ]
    assert members == RESULTS[method]
    ordinals = {"response": 1, "err": 2, "framework_err": 3}
    assert [m["ordinal"] for m in result["members"]] == [
        ordinals[member.split(":")[0]] for member in members
    ]
    assert (result["is_result"], result["strict"]) == (True, True)
    assert result["naming_context"] == ["P", "M", "Response"]
    (found,) = named(ir, "P")["methods"]
    assert payload(found, "maybe_response_payload") == "test.example/P_M_Result"
    assert payload(found, "maybe_response_success_type") is not None
    assert found["has_error"] == ("error" in method)
    assert ("maybe_response_err_type" in found) == ("error" in method)


def test_success_without_values_is_an_empty_struct() -> None:
    ir = compiled("protocol P { M() -> (); };")
    success = named(ir, "P_M_Response")
    assert (success["is_empty_success_struct"], success["members"]) == (True, [])
    assert success["naming_context"] == ["P", "M", "Response", "response"]


def test_result_with_handles_is_a_resource() -> None:
    ir = compiled(
        "protocol P { M() -> (resource struct { p client_end:P; }); N() -> (struct { a bool; }); };"
    )
    assert named(ir, "P_M_Result")["resource"]
    assert not named(ir, "P_N_Result")["resource"]


def test_ordinal_is_computed_from_the_selector_instead_of_the_name() -> None:
    found = methods('protocol P { A(); @selector("B2") B(); @selector("other.lib/Q.C") C(); };')
    assert {name: m["ordinal"] for name, m in found.items()} == {
        "A": ordinal_of("test.example/P.A"),
        "B": ordinal_of("test.example/P.B2"),
        "C": ordinal_of("other.lib/Q.C"),
    }


def test_composed_methods_keep_their_ordinals_and_attributes() -> None:
    text = (
        "protocol R { compose Q; C(); };\nprotocol Q { compose P; B(); };\n"
        'protocol P { @trace("p") A(); };'
    )
    found = methods(text, "R")
    assert {name: m["is_composed"] for name, m in found.items()} == {
        "C": False,
        "B": True,
        "A": True,
    }
    assert found["A"]["ordinal"] == ordinal_of("test.example/P.A")
    assert found["A"]["maybe_attributes"][0]["name"] == "trace"
    composed = named(compiled(text), "R")["composed_protocols"]
    assert [each["name"] for each in composed] == ["test.example/Q"]


def test_protocol_is_open_by_default() -> None:
    ir = compiled("protocol P {};\nopen protocol Q {};\najar protocol R {};\nclosed protocol S {};")
    assert [named(ir, name)["openness"] for name in "PQRS"] == ["open", "open", "ajar", "closed"]


def test_two_protocols_may_send_channel_ends_of_each_other() -> None:
    ir = compiled(
        "protocol P { M(resource struct { q client_end:Q; }); };\n"
        "protocol Q { M(resource struct { p server_end:P; }); };"
    )
    assert len(ir["declaration_order"]) == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("protocol P { A(); A(); };", "too similar names"),
        ("protocol P { AbC(); ab_c(); };", "too similar names"),
        ('protocol P { A(); @selector("A") B(); };', "has the ordinal of `A`"),
        ("protocol P { compose Q; A(); };\nprotocol Q { A(); };", "too similar names"),
        ("protocol P { compose Q; compose Q; };\nprotocol Q {};", "composed twice"),
        ("protocol P { compose Q; };", "cannot find `Q`"),
        ("protocol P { compose Q; };\ntype Q = struct {};", "only protocols"),
        ("protocol P { compose Q; };\nprotocol Q { compose P; };", "defined by itself"),
        ("closed protocol P { compose Q; };\najar protocol Q {};", "which is ajar"),
        ("closed protocol P { A(); };", "closed protocol can't have the flexible method"),
        ("closed protocol P { -> A(); };", "closed protocol can't"),
        ("ajar protocol P { A() -> (); };", "flexible two-way"),
        ("protocol P { strict flexible A(); };", "exclude each other"),
        ("open closed protocol P {};", "exclude each other"),
        ("strict protocol P {};", "can't be `strict`"),
        ("protocol P { A(uint8); };", "a payload is a struct, table or union"),
        ("protocol P { A(E); };\ntype E = enum {};", "a payload is"),
        ("protocol P { A(U:optional); };\ntype U = union {};", "a payload is"),
        ("protocol P { A(struct {}); };", "write `()`"),
        ("protocol P { A(Nothing); };", "cannot find `Nothing`"),
        ("protocol P { A() -> () error uint8; };", "an error is int32"),
        ("protocol P { A() -> () error string; };", "an error is int32"),
        ("protocol P { A() -> () error S; };\ntype S = struct {};", "an error is int32"),
        ("protocol P { A() -> () error E; };\ntype E = enum : uint8 {};", "an error is int32"),
        ("type T = table {};\nservice S { a T; };", "`client_end`s"),
        ("service S { a server_end:P; };\nprotocol P {};", "`client_end`s"),
        ("service S { a client_end:<P, optional>; };\nprotocol P {};", "can't be optional"),
        ("service S { a client_end:P; a client_end:P; };\nprotocol P {};", "too similar"),
        (
            """protocol P {}; @transport("Driver") protocol Q {};
            service S { a client_end:P; b client_end:Q; };""",
            "another transport",
        ),
    ],
)  # fmt: skip
def test_invalid_protocols_are_refused(text: str, reason: str) -> None:
    assert reason in error_of(text).reason


def test_service_has_its_members_in_the_ir() -> None:
    ir = compiled("protocol P {};\nservice S { a client_end:P; b client_end:P; };")
    assert [m["name"] for m in named(ir, "S")["members"]] == ["a", "b"]
    assert ir["declarations"]["test.example/S"] == "service"


def test_protocol_composed_twice_adds_its_methods_once() -> None:
    found = methods(
        "protocol P { compose Q; compose R; };\nprotocol Q { compose S; };\n"
        "protocol R { compose S; B(); };\nprotocol S { A(); };"
    )
    assert list(found) == ["A", "B"]
