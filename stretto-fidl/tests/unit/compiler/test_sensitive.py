"""Tests of the attribute `@sensitive`: allowed places, affected elements, misspellings."""

from __future__ import annotations

from typing import Any

import pytest

from fidl_support.source import compiled, error_of, named

SECRETS = """\
library test.secrets;
@sensitive alias Token = string:100;
alias Other = Token;
alias Several = vector<array<Other, 2>>;
alias Plain = string;
type Request = struct { shown bool; };
@sensitive alias Hidden = Request;
@sensitive alias Code = uint32;
@sensitive open protocol Quiet { M(struct { a bool; }); };
"""
USER = """\
using test.secrets;
type S = struct {
    a test.secrets.Token;
    b vector<test.secrets.Token:optional>;
    c array<test.secrets.Other, 3>;
    d test.secrets.Several;
    e Mine;
    @sensitive f bool;
    plain test.secrets.Plain;
};
alias Mine = vector<test.secrets.Other>;
type T = table { 1: a test.secrets.Token; 2: plain bool; 3: b vector<Mine>; };
type U = union { 1: a test.secrets.Other; 2: plain string; };
open protocol P {
    A(test.secrets.Hidden);
    B() -> (test.secrets.Hidden);
    strict C() -> (struct { a test.secrets.Token; }) error test.secrets.Code;
    -> D(test.secrets.Hidden);
    compose test.secrets.Quiet;
};
"""


def is_marked(element: dict[str, Any]) -> bool:
    names = [each["name"] for each in element.get("maybe_attributes", [])]
    assert names in ([], ["sensitive"])
    return bool(names)


def marks(element: dict[str, Any]) -> dict[str, bool]:
    parts = element.get("members") or element["methods"]
    return {each["name"]: is_marked(each) for each in parts}


class TestSensitiveTypesOfAnotherLibrary:
    IR = compiled(USER, **{"secrets.fidl": SECRETS})

    def test_members_of_sensitive_types_are_sensitive(self) -> None:
        sensitive = dict.fromkeys("abcdef", True)
        assert marks(named(self.IR, "S")) == {**sensitive, "plain": False}
        assert marks(named(self.IR, "T")) == {"a": True, "plain": False, "b": True}
        assert marks(named(self.IR, "U")) == {"a": True, "plain": False}
        assert is_marked(named(self.IR, "Mine")) is False

    def test_methods_and_errors_of_sensitive_types_are_sensitive(self) -> None:
        methods = {"A": True, "B": False, "C": False, "D": True, "M": True}
        assert marks(named(self.IR, "P")) == methods
        assert marks(named(self.IR, "P_B_Result"))["response"]
        result = named(self.IR, "P_C_Result")
        assert marks(result) == {"response": False, "err": True}
        assert marks(named(self.IR, "P_C_Response")) == {"a": True}

    def test_sensitive_attribute_of_a_type_is_copied_to_members_with_the_same_location(
        self,
    ) -> None:
        (mark,) = named(self.IR, "S")["members"][0]["maybe_attributes"]
        assert mark["location"] == {
            "filename": "secrets.fidl", "line": 2, "column": 1, "length": 10
        }  # fmt: skip


def test_all_declarations_of_a_sensitive_library_are_sensitive() -> None:
    hidden = "@sensitive library test.hidden; type S = struct { a bool; }; alias A = string;"
    ir = compiled(f"{hidden} open protocol P {{ M(struct {{ a bool; }}); }};")
    for name in ("S", "A", "P", "PMRequest"):
        assert is_marked(named(ir, name))
    assert marks(named(ir, "P")) == {"M": True}
    user = "using test.hidden; type T = struct { a test.hidden.A; };"
    assert marks(named(compiled(user, **{"hidden.fidl": hidden}), "T")) == {"a": True}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("type E = enum { @sensitive A = 1; };", "an enum member"),
        ("type B = bits { @sensitive A = 1; };", "a bits member"),
        ("@sensitive const C bool = true;", "a const"),
        ("@sensitive service S {};", "a service"),
        ("protocol Q {}; protocol P { @sensitive compose Q; };", "a compose"),
        ("protocol P {}; service S { @sensitive p client_end:P; };", "a service member"),
        ("[Sensitive] const bool C = true;", "a const"),
    ],
)
def test_attribute_sensitive_on_an_element_without_values_is_refused(text: str, place: str) -> None:
    error = error_of(text)
    assert "`@sensitive` stands on a type, member, method or protocol, not on " in str(error)
    assert f"not on {place}" in str(error)
    column = max(text.find("@sensitive"), text.find("Sensitive")) + 1
    assert str(error).startswith(f"example.fidl:2:{column}: ")


def test_attribute_sensitive_with_arguments_is_refused() -> None:
    assert "takes no arguments" in str(error_of("@sensitive(false) type S = struct {};"))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        *((name, "sensitive") for name in (
            "sensitve", "sensative", "sensetive", "senstive", "sensitiv", "sensitives", "snesitive",
            "Sensitive", "SENSITIVE", "sensitivv", "sensitvie", "sentisive",
        )),
        *((name, "trace") for name in ("trac", "tracee", "tarce", "traces", "Trace", "tace")),
    ],
)  # fmt: skip
def test_error_for_a_misspelled_attribute_names_the_correct_attribute(
    name: str, known: str
) -> None:
    error = error_of(f'open protocol P {{ @{name}("x") M(struct {{ a bool; }}); }};')
    assert f"`@{name}` would say nothing: write `@{known}`" in str(error)
    assert str(error).startswith("example.fidl:2:19: ")


@pytest.mark.parametrize(
    "name", ["sense", "sensitivity", "positive", "track", "trade", "brace", "space", "race_x"]
)
def test_unknown_attributes_are_kept_if_their_names_are_no_misspellings(name: str) -> None:
    ir = compiled(f"@{name} type S = struct {{}};")
    assert [each["name"] for each in named(ir, "S")["maybe_attributes"]] == [name]
