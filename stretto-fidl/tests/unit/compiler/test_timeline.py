from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of
from stretto_fidl.compiler import compile_sources
from stretto_fidl.compiler.timeline import MAX_VERSIONS
from stretto_fidl.errors import CompileError

HEAD = "@available(added=1)\nlibrary test.example;\n"


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("4", "@available(removed=3) type T = struct {}; @available(added=2) type T = table {};"),
        ("1", "@available(removed=3) type tt = struct {}; @available(added=2) alias TT = int8;"),
        (
            "3",
            "type T = struct { @available(removed=3) a int8; @available(added=2) a int8; };",
        ),
        ("1", "type E = strict(removed=3) flexible(added=2) enum { A = 1; };"),
        (
            "1",
            "@available(removed=3) alias A = bool; @available(added=2) alias B = A;",
        ),
        ("2", "@available(added=2) const A int8 = 1; const B int8 = A;"),
    ],
)
def test_errors_in_versions_not_requested_are_reported(version: str, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_sources({"a.fidl": HEAD + text}, versions={"test": version})
    assert "of `test`)" in caught.value.reason


def test_error_in_several_versions_is_reported_once_for_the_first_of_them() -> None:
    text = "@available(added=2) type T = struct {}; alias U = T; @available(added=3) alias V = T;"
    error = error_of(HEAD + text)
    assert [(e.line, e.reason) for e in error.errors] == [
        (3, "cannot find `T` in library `test.example` (in version 1 of `test`)")
    ]
    text = "@available(removed=HEAD) type T = struct {}; @available(added=NEXT) type T = struct {};"
    with pytest.raises(CompileError, match="in version NEXT of `test`"):
        compile_sources({"a.fidl": HEAD + text}, versions={"test": "1"})


def test_libraries_of_one_platform_have_the_same_version() -> None:
    other = (
        "@available(added=1)\nlibrary test.other;\n"
        "@available(replaced=3) type T = struct { a uint8; };\n"
        "@available(added=3, removed=5) type T = struct { a uint8; b uint8; };\n"
    )
    text = HEAD + "using test.other;\n@available(removed=%s) type U = struct { t test.other.T; };"
    with pytest.raises(CompileError, match=r"cannot find `test.other.T`.*version 5 of `test`"):
        compile_sources({"a": text % 6}, dependencies={"b": other}, versions={"test": "2"})
    for version, size in [("1", 1), ("2", 1), ("3", 2), ("4", 2)]:
        ir = compile_sources({"a": text % 5}, dependencies={"b": other}, versions={"test": version})
        assert ir["struct_declarations"][0]["type_shape_v2"]["inline_size"] == size


def test_libraries_of_other_platforms_keep_their_version() -> None:
    """A library without versions uses the compiled version of each library that it imports."""
    other = "@available(added=4)\nlibrary other;\ntype T = struct {};\n"
    plain = "library plain;\nusing other;\nusing test.base;\n"
    plain += "type P = struct { t other.T; b test.base.B; };\n"
    base = (
        "@available(added=1)\nlibrary test.base;\ntype B = struct { @available(added=2) b bool; };"
    )
    text = HEAD + "using plain;\n@available(added=3) alias A = plain.P;\n"
    compiled(text, o=other, p=plain, b=base)
    sources = {"o": other, "p": plain, "b": base}
    with pytest.raises(CompileError, match=r"cannot find `other.T`"):
        compile_sources({"a": text}, dependencies=sources, versions={"other": "3"})


def test_import_used_in_one_version_is_not_reported_as_unused() -> None:
    other = "library other;\ntype T = struct {};\n"
    text = HEAD + "using other;\n@available(added=%s, removed=%s) alias A = other.T;\n"
    compiled(text % (2, 3), o=other)
    assert "imported, but not used" in error_of(HEAD + "using other;\n", o=other).reason


def test_deprecated_declarations_are_used_only_by_deprecated_declarations() -> None:
    start = HEAD + "@available(deprecated=5) alias A = uint8;\n"
    start += "type E = enum { @available(deprecated=5) X = 1; Y = 2; };\n"
    for use in (
        "type T = struct { a A; };",
        "type T = struct { a vector<A>:optional; };",
        "const C E = E.X;",
        "type T = table { 1: a vector<uint8>:E.X; };",
        "protocol P { @available(added=2) M(struct { a A; }); };",
        "alias B = A;",
    ):
        error = error_of(start + use)
        assert "is deprecated, but" in error.reason, use
    compiled(
        start + "@available(deprecated=5) type T = struct { a A; };\n"
        "type U = struct { @available(deprecated=4) a A; @available(removed=5) b A; };\n"
        "@available(removed=5) const C E = E.X;\nconst D E = E.Y;\n"
        "protocol P { @available(deprecated=5) M() -> (struct { a A; }) error E; };\n"
    )
    with pytest.raises(CompileError, match="is deprecated"):
        compile_sources({"a": start + "alias B = A;"}, versions={"test": "2"})


def test_more_than_64_versions_are_refused() -> None:
    members = "".join(f"@available(added={n}) {n}: a{n} bool; " for n in range(1, MAX_VERSIONS))
    compiled(HEAD + f"type T = table {{ {members} }};")
    members = "".join(f"@available(added={n}) a{n} bool; " for n in range(2, MAX_VERSIONS + 2))
    assert "the limit is 64" in error_of(HEAD + f"type T = struct {{ {members} }};").reason


def test_long_library_with_many_versions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + "@available(added=2) type T = struct {};\n"
    compiled(text)
    monkeypatch.setattr("stretto_fidl.compiler.timeline.MAX_CHARACTERS", 2 * len(text) - 1)
    assert "too long to be checked in all its 2 versions" in error_of(text).reason


def test_custom_attribute_may_have_arguments_named_added_and_removed() -> None:
    text = '@custom(added="x", removed=true) type T = struct {};'
    compiled(text)
    compiled(HEAD + text)
