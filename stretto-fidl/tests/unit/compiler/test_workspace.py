"""Tests of libraries that consist of several files or use other libraries."""

from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of, named
from stretto_fidl.compiler import compile_files, compile_sources
from stretto_fidl.errors import CompileError


def test_library_may_have_several_files() -> None:
    ir = compile_sources(
        {"a.fidl": "library l;\ntype A = struct { b B; };", "b.fidl": "library l;\nstruct B {};"}
    )
    assert ir["declaration_order"] == ["l/B", "l/A"]
    places = [d["location"]["filename"] for d in ir["struct_declarations"]]
    assert places == ["a.fidl", "b.fidl"]


def test_declarations_of_other_libraries_are_used() -> None:
    ir = compiled(
        "using other.one;\nusing two as second;\n"
        "type T = struct { a other.one.S; b second.E; c array<uint8, second.N>; };\n"
        "const K second.E = second.E.A;",
        one="library other.one;\ntype S = struct { x uint64; };\ntype U = resource table {};",
        two="library two;\ntype E = strict enum { A = 9; };\nconst N uint32 = 3;",
    )
    assert named(ir, "T")["type_shape_v2"]["inline_size"] == 16
    assert named(ir, "K")["value"]["identifier"] == "two/E.A"
    one, two = ir["library_dependencies"]
    assert (one["name"], two["name"]) == ("other.one", "two")
    assert {name: d["kind"] for name, d in two["declarations"].items()} == {
        "two/N": "const",
        "two/E": "enum",
    }
    table = one["declarations"]["other.one/U"]
    assert list(table) == ["kind", "resource", "type_shape_v2"]
    assert table["resource"] is True


def test_types_of_composed_methods_are_external_declarations() -> None:
    ir = compiled(
        "using middle;\nprotocol P { compose middle.Q; };",
        middle="library middle;\nusing bottom;\nprotocol Q { M(bottom.S); };",
        bottom="library bottom;\ntype S = struct { a bool; };",
    )
    assert [s["name"] for s in ir["external_struct_declarations"]] == ["bottom/S"]
    assert [d["name"] for d in ir["library_dependencies"]] == ["bottom", "middle"]
    assert "bottom/S" not in ir["declarations"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("using missing;", "give its files as dependencies"),
        ("using other;", "not used"),
        ("using other;\nusing other;", "imported twice"),
        ("using other;\nusing other as o;", "imported twice"),
        ("using other as x;\nusing third as x;", "already imported as `x`"),
        ("using other as Foo;\ntype Foo = other.S;", "also the name of an imported library"),
        ("using other as o;\ntype T = struct { a other.S; };", "cannot find `other.S`"),
        ("using other;\ntype T = struct { a other.Missing; };", "cannot find `other.Missing`"),
        ("type T = struct { a other.S; };", "is library `other` imported by `using`"),
        ("library other;", "among the dependencies"),
        ("using ring;", "need each other: ring -> ring2 -> ring"),
    ],
)
def test_invalid_imports_are_refused(text: str, reason: str) -> None:
    error = error_of(
        text,
        other="library other;\ntype S = struct {};",
        third="library third;",
        ring="library ring;\nusing ring2;",
        ring2="library ring2;\nusing ring;",
    )
    assert reason in error.reason


def test_import_applies_only_to_its_file() -> None:
    files = {
        "a.fidl": "library l;\nusing o;\ntype A = struct { s o.S; };",
        "b.fidl": "library l;\ntype B = struct { s o.S; };",
    }
    with pytest.raises(CompileError, match=r"b\.fidl:2:21: cannot find `o\.S`"):
        compile_sources(files, dependencies={"o.fidl": "library o;\ntype S = struct {};"})


def test_files_of_two_libraries_are_refused() -> None:
    with pytest.raises(CompileError, match="must be of one library, but there are: a, b"):
        compile_sources({"a": "library a;", "b": "library b;"})
    with pytest.raises(CompileError, match="there are: none"):
        compile_sources({})


def test_errors_of_all_files_are_reported() -> None:
    with pytest.raises(CompileError) as caught:
        compile_sources({"a": "library a;\n$", "b": "library a;\n\n$"})
    assert [(e.filename, e.line) for e in caught.value.errors] == [("a", 2), ("b", 3)]


def test_user_defined_library_zx_takes_precedence() -> None:
    ir = compiled(
        "using zx;\ntype S = resource struct { h zx.Thing:SPECIAL; };",
        zx="library zx;\ntype Kinds = enum { SPECIAL = 77; };\n"
        "resource_definition Thing : uint32 { properties { subtype Kinds; }; };",
    )
    type_ = named(ir, "S")["members"][0]["type"]
    assert (type_["obj_type"], type_["subtype"], type_["resource_identifier"]) == (
        77,
        "special",
        "zx/Thing",
    )


def test_compiler_reads_library_files_from_disk(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "a.fidl"
    path.write_text("library a;\n")
    assert compile_files([path])["name"] == "a"
    path.write_bytes(b"library a;\n\xff")
    with pytest.raises(CompileError, match="no UTF-8"):
        compile_files([path])
    with pytest.raises(CompileError, match="cannot read"):
        compile_files([tmp_path / "missing"])


BOTTOM = (
    "library bottom;\nconst N uint32 = 2;\ntype S = struct {};\nprotocol P {};\ntype E = enum {};"
)


@pytest.mark.parametrize(
    "method",
    [
        "M(bottom.S);",
        "M(struct { s bottom.S; });",
        "M(struct { s vector<bottom.S>; });",
        "M(struct { s box<bottom.S>; });",
        "M(struct { s vector<uint8>:bottom.N; });",
        "M(struct { s array<uint8, bottom.N>; });",
        "M(resource struct { s server_end:bottom.P; });",
        "strict M() -> (struct { s bottom.S; });",
        "M() -> (struct { s bottom.S; }) error uint32;",
        "M() -> () error bottom.E;",
    ],
)
def test_libraries_of_composed_methods_are_dependencies(method: str) -> None:
    middle = f"library middle;\nusing bottom;\nprotocol Q {{ {method} }};"
    ir = compiled("using middle;\nprotocol R { compose middle.Q; };", middle=middle, bottom=BOTTOM)
    assert [d["name"] for d in ir["library_dependencies"]] == ["bottom", "middle"]


@pytest.mark.parametrize(
    "middle",
    [
        "alias A = bottom.S;\nprotocol Q { M(struct { a vector<A>; }); };",
        "type A = struct { s bottom.S; };\nprotocol Q { M(struct { a A; }); };",
    ],
)
def test_ir_lists_only_directly_used_libraries_as_dependencies(middle: str) -> None:
    ir = compiled(
        "using middle;\nprotocol R { compose middle.Q; };",
        middle=f"library middle;\nusing bottom;\n{middle}",
        bottom=BOTTOM,
    )
    assert [d["name"] for d in ir["library_dependencies"]] == ["middle"]
