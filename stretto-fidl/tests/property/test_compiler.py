"""For any text, the FIDL compiler ends within a time limit, with an IR or a `CompileError`."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fidl_support.samples import SAMPLES, WORDS
from stretto_fidl.bindings import load
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import CompileError
from tests.support.examples import examples

SECONDS = 5
"""Far more time than a few kilobytes take, even on a busy machine."""


def compile_within_bounds(text: str) -> dict[str, Any] | None:
    """Compile a text and check the time taken; return the IR, or None for an invalid text."""
    start = time.monotonic()
    found: CompileError | None = None
    ir = None
    try:
        ir = compile_sources({"fuzz.fidl": text})
    except CompileError as error:
        found = error
    assert time.monotonic() - start < SECONDS
    assert found is None or (found.reason and (not found.filename or found.line >= 1))
    json.dumps(ir)
    return ir


@given(st.text(max_size=200))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    compile_within_bounds(text)


@given(st.lists(st.sampled_from(WORDS), max_size=80))
def test_any_sequence_of_words_is_compiled_or_refused(words: list[str]) -> None:
    compile_within_bounds("library test; " + " ".join(words))


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """Generate a definition with some words dropped, doubled, exchanged or replaced."""
    words = draw(st.sampled_from(SAMPLES)).split(" ")
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(words) - 1))
        other = draw(st.one_of(st.sampled_from(WORDS), st.sampled_from(words)))
        words[place : place + draw(st.integers(0, 2))] = draw(
            st.sampled_from([[], [other], [words[place], words[place]], [other, words[place]]])
        )
        words = words or [""]
    return " ".join(words)


@settings(max_examples=examples(200))
@given(mutations())
def test_mutated_definition_is_compiled_or_refused(text: str) -> None:
    compile_within_bounds(text)


def test_sample_definitions_compile() -> None:
    for sample in SAMPLES:
        assert compile_within_bounds(sample) is not None


# Strategies that generate valid definitions from the grammar.

PRIMITIVES = ["bool", "uint8", "int16", "uint32", "int64", "float32", "float64"]
NAMES = ["alpha", "beta", "gamma", "delta", "epsilon"]
TYPES = st.recursive(
    st.one_of(
        st.sampled_from(PRIMITIVES),
        st.sampled_from(["string", "string:5", "string:<7, optional>"]),
        st.sampled_from(["Later", "box<LaterStruct>", "LaterUnion:optional"]),
    ),
    lambda inner: st.one_of(
        st.builds("vector<{}>:{}".format, inner, st.integers(1, 9)),
        st.builds("vector<{}>".format, inner),
        st.builds("array<{}, {}>".format, inner, st.integers(1, 4)),
    ),
    max_leaves=4,
)
FIXED = """
type Later = table { 1: a uint8; };
type LaterStruct = struct { a uint8; };
type LaterUnion = strict union { 1: a uint8; };
"""


@st.composite
def layouts(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["struct", "table", "union", "strict union"]))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    members = []
    for ordinal, name in enumerate(names, 1):
        type_ = draw(TYPES)
        if kind == "struct":
            members.append(f"{name} {type_};")
        else:
            members.append(f"{ordinal}: {name} vector<{type_}>;")
    return f"{kind} {{ {' '.join(members)} }}"


@given(st.lists(layouts(), min_size=1, max_size=4), st.permutations(range(5)))
def test_valid_definitions_compile_and_load(texts: list[str], places: list[int]) -> None:
    declarations = [f"type T{number} = {text};" for number, text in enumerate(texts)]
    declarations += [FIXED]
    declarations.sort(key=lambda text: places[len(text) % 5])
    ir = compile_within_bounds("library test;\n" + "\n".join(declarations))
    assert ir is not None
    assert len(ir["declaration_order"]) == len(texts) + 3
    order = ir["declaration_order"]
    assert len(set(order)) == len(order)
    for struct in ir["struct_declarations"]:
        end = 0
        for member in struct["members"]:
            shape, place = member["type"]["type_shape_v2"], member["field_shape_v2"]
            assert place["offset"] % shape["alignment"] == 0
            assert place["offset"] == end
            end = place["offset"] + shape["inline_size"] + place["padding"]
        assert end == struct["type_shape_v2"]["inline_size"]
    load(ir)


# Each test of compile time compiles a text that consists of MANY similar pieces.
MANY = 1500
LARGE = {
    "structs": lambda i: f"type T{i} = struct {{ a uint8; }};",
    "a chain of structs": lambda i: f"type T{i} = struct {{ a box<T{i + 1}>; }};",
    "constants": lambda i: f"const C{i} uint8 = E.M{i % 50};",
    "methods": lambda i: f"protocol P{i} {{ M() -> () error uint32; }};",
    "aliases": lambda i: f"alias A{i} = vector<T{MANY}>:5;",
    "errors": lambda i: f"type T{i} = struct {{ a Missing{i}; }};",
    "modifiers": lambda i: "strict ",
    "parentheses": lambda i: "(",
    "attributes": lambda i: f"@a{i} ",
    "comments": lambda i: "/// x\n",
    "strings": lambda i: f'const S{i} string = "{"x" * 50}";',
}


@pytest.mark.parametrize("what", LARGE)
def test_large_files_take_linear_time(what: str) -> None:
    members = " ".join(f"M{number} = {number};" for number in range(50))
    last = f"\ntype T{MANY} = struct {{}};\ntype E = strict enum : uint8 {{ {members} }};"
    text = "library test;\n" + "\n".join(LARGE[what](number) for number in range(MANY)) + last
    start = time.monotonic()
    with contextlib.suppress(CompileError):
        compile_sources({"large.fidl": text})
    assert time.monotonic() - start < 4 * SECONDS


def test_many_versions_take_linear_time() -> None:
    members = "\n".join(
        f"@available(added={1 + number % 60}) {number + 1}: m{number} bool;" for number in range(64)
    )
    members = members.replace("64: m63 bool", "64: m63 table {}")
    tables = "\n".join(f"type T{number} = table {{ {members} }};" for number in range(4))
    compile_within_bounds(f"@available(added=1)\nlibrary test;\n{tables}")


def test_many_members_take_linear_time() -> None:
    members = " ".join(f"m{number} = {number};" for number in range(MANY))
    uses = "\n".join(f"const C{number} uint32 = E.m{number};" for number in range(MANY))
    compile_within_bounds(f"library test;\ntype E = strict enum {{ {members} }};\n{uses}")
