from __future__ import annotations

import re
from typing import Any

import pytest

from fidl_support.source import compiled, error_of, named


def attributes(element: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    return [
        (a["name"], {g["name"]: g["value"]["value"] for g in a["arguments"]})
        for a in element.get("maybe_attributes", [])
    ]


def test_user_defined_attributes_are_in_the_ir() -> None:
    ir = compiled(
        '@a @b("x") @c(d="y", e=true) @f(X)\nprotocol P {};\nconst X string = "constant";'
    )
    assert attributes(named(ir, "P")) == [
        ("a", {}),
        ("b", {"value": "x"}),
        ("c", {"d": "y", "e": "true"}),
        ("f", {"value": "constant"}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("protocol P { @trace M(); };", "`@trace` needs its argument"),
        ("protocol P { @trace(true) M(); };", "`value` must be a string"),
        ('protocol P { @trace(category="x") M(); };', "no argument `category`"),
        ('@trace("x") type S = struct {};', "`@trace` stands on protocol or method"),
        ("[Trace] protocol P {};", "`@trace` needs its argument"),
    ],
)
def test_trace_attribute_without_a_valid_category_is_refused(text: str, message: str) -> None:
    assert re.search(message, str(error_of(text)))


def test_repeated_trace_attributes_are_kept() -> None:
    ir = compiled('protocol P { @trace("first") @trace("second") M(); };')
    (method,) = named(ir, "P")["methods"]
    assert attributes(method) == [("trace", {"value": "first"}), ("trace", {"value": "second"})]


def test_doc_comments_become_doc_attributes() -> None:
    ir = compiled(
        "///  One.\n///\n/// Two.\n@a\ntype T = struct {\n    /// Three.\n    m bool;\n};"
    )
    declaration = named(ir, "T")
    assert attributes(declaration) == [("doc", {"value": "  One.\n\n Two.\n"}), ("a", {})]
    assert attributes(declaration["members"][0]) == [("doc", {"value": " Three.\n"})]
    doc = declaration["maybe_attributes"][0]
    assert doc["location"] == {"filename": "example.fidl", "line": 2, "column": 1, "length": 22}
    assert doc["arguments"][0]["value"]["expression"] == "///  One.\n///\n/// Two."


def test_every_kind_of_element_may_have_attributes() -> None:
    ir = compiled(
        "@a library test.example;\n"
        "@a type S = struct { @a m @a struct {}; };\n@a type E = enum { @a X = 1; };\n"
        "@a type U = union { @a 1: m bool; };\n@a type T = table { @a 1: m bool; };\n"
        "@a const C bool = true;\n@a alias A = bool;\n"
        "@a protocol P { @a M(@a struct { b bool; }); @a compose Q; };\nprotocol Q {};\n"
        "@a service Service { @a p client_end:P; };\n"
    )
    assert str(ir).count("'name': 'a', 'arguments'") == 18


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@a @a protocol P {};", "stands here twice"),
        ("@fooBar @foo_bar protocol P {};", "stands here twice"),
        ("@a(5) protocol P {};", "no numbers"),
        ("@a(X) protocol P {};", "isn't a constant of type string or bool"),
        ('@a("x" | "y") protocol P {};', "can't be combined"),
        ("@a(b=true, b=false) protocol P {};", "given twice"),
        ("@selector protocol P {};", "stands on method"),
        ("@transport type S = struct {};", "stands on protocol"),
        ("@transport protocol P {};", "needs its argument"),
        ('@transport("Pigeon") protocol P {};', "no transport: there are Banjo, Channel"),
        ("@transport(true) protocol P {};", "must be a string"),
        ('@transport(name="Channel") protocol P {};', "has no argument `name`"),
        ('protocol P { @selector("a b") M(); };', "no selector"),
        ('@discoverable("nope") protocol P {};', "the.library.Protocol"),
        ('@discoverable(nope="a.B") protocol P {};', "has no argument `nope`"),
        ('@discoverable(client="moon") protocol P {};', "not `platform` or `external`"),
        ('@generated_name("X") type S = struct {};', "stands on anonymous layout"),
        ("type S = struct { a @generated_name struct {}; };", "needs its argument"),
        ('type S = struct { a @generated_name("1") struct {}; };', "isn't the name of a type"),
        ("type S = struct { a @generated_name(X) struct {}; };", "needs a string literal"),
        ("@no_resource(true) protocol P {};", "takes no arguments"),
        ("/// a\n@doc(\"b\") protocol P {};", "stands here twice"),
        ("@a(X) library test.example;\nconst X string = \"\";", "take literals"),
    ],
)  # fmt: skip
def test_malformed_attributes_are_refused(text: str, reason: str) -> None:
    assert reason in error_of(text).reason
