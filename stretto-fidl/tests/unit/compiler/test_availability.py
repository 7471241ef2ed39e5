from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import CompileError

TEXT = """\
@available(added=1)
library test.example;
@available(added=2)
type A = struct {};
@available(added=1, replaced=3)
type B = struct { x uint8; };
@available(added=3)
type B = struct { x uint16; };
type C = table {
    @available(added=2, removed=4)
    1: old bool;
    @available(deprecated=3)
    2: stays bool;
};
protocol P {
    @available(replaced=2)
    M();
    @available(added=2)
    M(struct { a bool; });
};
"""


def at(version: str) -> dict[str, object]:
    ir = compile_sources({"a.fidl": TEXT}, versions={"test": version})
    (table,) = ir["table_declarations"]
    return {
        "names": sorted(name.split("/")[1] for name in ir["declarations"]),
        "members": [(m["name"], m["deprecated"]) for m in table["members"]],
        "payload": "maybe_request_payload" in ir["protocol_declarations"][0]["methods"][0],
        "available": ir["available"],
    }


def test_each_version_has_its_declarations_and_members() -> None:
    assert at("1") == {
        "names": ["B", "C", "P"],
        "members": [("stays", False)],
        "payload": False,
        "available": {"test": ["1"]},
    }
    assert at("2")["names"] == ["A", "B", "C", "P", "PMRequest"]
    assert at("3")["members"] == [("old", False), ("stays", True)]
    assert at("4")["members"] == [("stays", True)]
    assert at("HEAD")["payload"] is True


def test_versioned_modifiers_apply_only_in_their_versions() -> None:
    text = (
        "@available(added=1)\nlibrary test.example;\n"
        "type E = strict(removed=2) flexible(added=2) enum { A = 1; };\n"
        "type S = resource(added=2) struct {};\n"
        "open(removed=2) closed(added=2) protocol P { flexible(removed=2) strict(added=2) M(); };\n"
    )

    def facts(version: str) -> tuple[object, ...]:
        ir = compile_sources({"a.fidl": text}, versions={"test": version})
        (protocol,) = ir["protocol_declarations"]
        (method,) = protocol["methods"]
        return (
            ir["enum_declarations"][0]["strict"],
            ir["struct_declarations"][0]["resource"],
            protocol["openness"],
            method["strict"],
        )

    assert facts("1") == (True, False, "open", False)
    assert facts("2") == (False, True, "closed", True)


def test_head_is_the_default_version() -> None:
    ir = compiled(TEXT)
    shapes = [s["type_shape_v2"]["inline_size"] for s in ir["struct_declarations"]]
    assert ("available" in ir, ir["platform"], shapes) == (False, "test", [1, 2, 1])


def test_special_versions_are_constants_of_the_language() -> None:
    ir = compiled("@available(added=NEXT)\nlibrary test.example;")
    (argument,) = ir["maybe_attributes"][0]["arguments"]
    assert argument["value"] == {
        "kind": "identifier",
        "value": "4291821568",
        "expression": "NEXT",
        "identifier": "fidl/NEXT",
    }


def test_library_is_empty_in_versions_before_its_addition_and_after_its_removal() -> None:
    text = "@available(added=2, removed=4)\nlibrary test.example;\ntype T = struct {};\n"
    for version, count in [("1", 0), ("2", 1), ("3", 1), ("4", 0), ("HEAD", 0)]:
        ir = compile_sources({"a.fidl": text}, versions={"test": version})
        assert len(ir["declarations"]) == count, version


def test_version_numbers_are_written_as_decimals() -> None:
    for number in ("0x7fffffff", "0xFFD00000", "4292870144", "0b101"):
        ir = compiled(f"@available(added={number})\nlibrary test.example;")
        (argument,) = ir["maybe_attributes"][0]["arguments"]
        assert argument["value"]["value"] == str(int(number, 0))


def test_platform_and_version_are_in_the_ir() -> None:
    assert compiled("type A = struct {};")["platform"] == "unversioned"
    ir = compiled('@available(platform="mine", added=1)\nlibrary a.b;')
    assert ir["platform"] == "mine"
    arguments = ir["maybe_attributes"][0]["arguments"]
    assert [(a["name"], a["type"], a["value"]["value"]) for a in arguments] == [
        ("platform", "string", "mine"),
        ("added", "uint32", "1"),
    ]


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("", "needs arguments"),
        ("(1)", "no such argument"),
        ("(added=0)", "invalid version"),
        ("(added=2147483648)", "invalid version"),
        ("(added=0x80000000)", "invalid version"),
        ("(added=010000000000)", "invalid version"),
        ('(added="1")', "invalid version"),
        ("(added=SOON)", "invalid version"),
        ("(nope=1)", "no such argument"),
        ('(platform="x")', "on the library only"),
        ("(added=3, removed=3)", "added before it is removed"),
        ("(added=3, deprecated=2)", "deprecated after it is added"),
        ("(removed=3, replaced=3)", "exclude each other"),
        ('(note="x")', "`note` needs"),
        ('(renamed="x")', "`renamed` needs"),
        ("(added=1)", "when what it is a part of doesn't"),
        ("(removed=11)", "when what it is a part of doesn't"),
        ("(replaced=10)", "when what it is a part of doesn't"),
        ("(deprecated=9)", "when what it is a part of doesn't"),
    ],
)
def test_malformed_availability_is_refused(attribute: str, reason: str) -> None:
    text = (
        "@available(added=2, deprecated=8, removed=10)\nlibrary test.example;\n"
        f"@available{attribute}\ntype T = struct {{}};"
    )
    assert reason in error_of(text).reason


def test_malformed_versions_of_modifiers_are_refused() -> None:
    head = "@available(added=1)\nlibrary test.example;\n"
    text = "type E = strict(deprecated=2) enum { A = 1; };"
    assert "only `added` and `removed`" in error_of(head + text).reason
    text = "type E = strict(added=2) flexible enum { A = 1; };"
    assert "exclude each other" in error_of(head + text).reason
    assert "not on the library" in error_of("type E = strict(added=2) enum { A = 1; };").reason


def test_malformed_availability_of_a_library_is_refused() -> None:
    assert "not on the library" in error_of("@available(added=1)\ntype T = struct {};").reason
    assert "must say `added`" in error_of("@available(deprecated=1)\nlibrary a;").reason
    assert "can't be `replaced`" in error_of("@available(added=1, replaced=2)\nlibrary a;").reason
    text = '@available(added=1, removed=2, renamed="b")\nlibrary a;'
    assert "can't be `renamed`" in error_of(text).reason
    text = '@available(platform="unversioned", added=1)\nlibrary a;'
    assert "means none" in error_of(text).reason
    text = '@available(platform="A", added=1)\nlibrary a;'
    assert "platform's name" in error_of(text).reason
    with pytest.raises(CompileError, match="'x' isn't a version"):
        compile_sources({"a": "library a;"}, versions={"a": "x"})
