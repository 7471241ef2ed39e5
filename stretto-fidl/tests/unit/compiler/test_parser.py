"""The parser detects the syntax of a file and reports errors in invalid FIDL."""

from __future__ import annotations

import pytest

from fidl_support.source import HEAD, compiled, error_of
from stretto_fidl.compiler.lexer import lex
from stretto_fidl.compiler.parser import is_old_syntax
from stretto_fidl.compiler.source import SourceFile
from stretto_fidl.compiler.token_stream import MAX_NESTING

OLD = [
    "struct S { int32 a; };",
    "strict union U { 1: int32 a; };",
    "using X = uint8;",
    "const uint32 X = 1;",
    "const other.Type X = 1;",
    "const string:5 X = Y;",
    '[Doc = "x"] protocol P {};',
    "protocol P { M(int32 a); };",
    "protocol P { M(vector<int32> a); };",
    "protocol P { M(other.T a); };",
    "protocol P { M() -> (T? a); };",
    "service S { P member; };",
    "deprecated_syntax;\nprotocol P {};",
]
NEW = [
    "type S = struct { a int32; };",
    "alias X = uint8;",
    "const X uint32 = 1;",
    "@doc protocol P {};",
    "protocol P { M(struct { a int32; }); };",
    "protocol P { M(T); };",
    "protocol P { M(resource struct {}); };",
    "open protocol P {};",
    "service S { member client_end:P; };",
    "protocol P {};",
    "",
]


@pytest.mark.parametrize("text", OLD)
def test_old_syntax_is_detected(text: str) -> None:
    assert is_old_syntax(lex(SourceFile("x", HEAD + text)))


@pytest.mark.parametrize("text", NEW)
def test_new_syntax_is_detected(text: str) -> None:
    assert not is_old_syntax(lex(SourceFile("x", HEAD + text)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("library", "found end of file, expected a name"),
        ("library a", "expected `;` after the library's name"),
        ("library A;", "invalid part `A` of a library name"),
        ("library a.b_c;", "invalid part `b_c`"),
        ("frobnicate;", "expected a declaration here: alias, const"),
        ("type = struct {};", "expected a name after `type`"),
        ("type X struct {};", "expected `=` after the type's name"),
        ("type X = struct {}", "found end of file, expected `;`"),
        ("type X = struct { a uint8 };", "expected `;` after the member"),
        ("type X = struct { a; };", "expected a name as a type"),
        ("type X = strict foo {};", "`foo` isn't a layout"),
        ("type X = strict strict union {};", "here twice"),
        ("type X = struct : uint8 {};", "a struct has no underlying type"),
        ("type X = table { a uint8; };", "expected an ordinal"),
        ("type X = table { 0: a uint8; };", "ordinals start at 1"),
        ("type X = table { -1: a uint8; };", "decimal number"),
        ("type X = table { 4294967296: a uint8; };", "up to 4294967295"),
        ("type X = union { 1: a uint8 = 5; };", "only members of structs have defaults"),
        ("type X = enum { A; };", "expected `=` after the member's name"),
        ("type X = @foo struct {};", "before `type`"),
        ("type X = struct { a @foo Y; };", "not with the name of a type"),
        ("alias X = struct {};", "give it a name"),
        ("strict type X = struct {};", "doesn't go with `type`"),
        ("const X uint8;", "expected `=`"),
        ("const X uint8 = ;", "expected a constant"),
        ("const X uint8 = (1 | 2;", "expected `)`"),
        ("@foo() protocol P {};", "has no `()`"),
        ("@foo(1, 2) protocol P {};", "all have names"),
        ("protocol P { M(uint8 a) };", "expected `;`"),
        ("protocol P { strict M(T x); };", "one payload"),
        ("protocol P { M(/// no\n struct {}); };", "doc comments"),
        ("protocol P { M() error uint32; };", "add `-> ()`"),
        ("protocol P { -> E() error uint32; };", "event can't have an error"),
        ("protocol P { strict compose Q; };", "has no modifiers"),
        ("protocol P { resource M(); };", "can't be `resource`"),
        ("protocol P {};\nusing zx;", "must come before"),
        ("/// no\nusing zx;", "neither attributes nor doc"),
        ("resource_definition R : uint32 {};", "expected `properties`"),
    ],
)
def test_invalid_text_is_refused(text: str, reason: str) -> None:
    assert reason in error_of(text).reason


def test_error_message_shows_the_line_with_a_caret() -> None:
    error = error_of("type X = struct {\n\ta  Missing;\n};")
    assert (error.filename, error.line, error.column) == ("example.fidl", 3, 5)
    assert str(error).splitlines() == [
        "example.fidl:3:5: cannot find `Missing` in library `test.example`",
        "\ta  Missing;",
        "\t   ^",
    ]


def test_independent_errors_are_reported_without_their_consequences() -> None:
    error = error_of("const A uint8 = 256;\nconst B uint8 = A;\ntype C = struct { d E; };")
    assert [each.line for each in error.errors] == [2, 4]
    assert str(error).count("^") == 2


def test_layouts_may_have_the_names_of_keywords() -> None:
    ir = compiled(
        "type struct = struct { struct struct2; };\ntype struct2 = enum { enum = 1; };\n"
        "type library = table { 1: using struct; 2: type vector<struct2>; 3: reserved bool; };\n"
        "protocol protocol { compose(library) -> (library); strict strict(); };"
    )
    assert len(ir["declarations"]) == 5


@pytest.mark.parametrize(
    ("start", "middle", "end"),
    [
        ("type X = ", "struct { a ", "uint8" + "; }" * 5000),
        ("type X = struct { a ", "vector<", ""),
        ("const X uint8 = ", "(", ""),
        ("protocol P { M(", "struct { a ", ""),
    ],
)
def test_deep_nesting_is_refused(start: str, middle: str, end: str) -> None:
    error = error_of(start + middle * 5000 + end)
    assert f"more than {MAX_NESTING} levels" in error.reason


def test_nesting_up_to_the_limit_is_accepted() -> None:
    depth = MAX_NESTING - 1
    text = "vector<" * depth + "uint8" + ">" * depth
    assert compiled(f"alias X = {text};")["declaration_order"] == ["test.example/X"]


def test_long_or_expression_does_not_count_as_nesting() -> None:
    terms = " | ".join(["1"] * 5000)
    assert compiled(f"const X uint8 = {terms};")["const_declarations"][0]["value"]["value"] == "1"


def test_only_the_first_20_errors_are_shown() -> None:
    error = error_of("\n".join(f"const C{i} uint8 = 256;" for i in range(100)))
    assert len(error.errors) == 100
    assert str(error).count("^") == 20
    assert str(error).endswith("… and 80 more errors")
