"""FIDL values are equal after encoding and decoding; invalid messages raise WireError."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fidl_support.codec_checks import SEEDS, WORDS, check, open_handles
from fidl_support.ir import library
from fidl_support.vectors.groups import TYPES
from stretto_fidl import codec
from stretto_fidl.bindings import load
from stretto_fidl.codec import types

ALL = load(
    library(
        structs={
            "Leaf": "a uint8, flag bool, level Level, modes Modes, f float32, d float64",
            "Everything": (
                "i8 int8, text string:20, maybe string?, numbers vector<uint16>:5, "
                "data vector<uint8>?, leaves vector<Leaf>:3, grid array<array<int32,2>,2>, "
                "boxed Leaf?, options Options, choice Choice, maybe_choice Choice?, "
                "more Everything?, texts array<string:4,2>, bools vector<bool>, nothing Empty"
            ),
            "Empty": "",
        },
        tables={"Options": "1: a uint8, 2: b string:3, 4: leaf Leaf, 7: more Options"},
        unions={"Choice": "1: a uint16, 2: text string:3, 3: leaf Leaf, 9: more Choice"},
        enums={"Level": ("flexible", "int16", {"LOW": -1, "HIGH": 1})},
        bits={"Modes": ("strict", "uint8", {"READ": 1, "WRITE": 2})},
    )
)


def values(type_: types.Type, depth: int = 0) -> st.SearchStrategy[Any]:
    """Generate any value of a type."""
    type_, optional = types.resolve(type_)
    optional = optional or getattr(type_, "optional", False)
    if optional and depth > 3:
        return st.none()
    found = _required(type_, depth + 1)
    return st.none() | found if optional else found


def _required(type_: Any, depth: int) -> st.SearchStrategy[Any]:
    match type_:
        case types.Primitive(name="bool"):
            return st.booleans()
        case types.Primitive(name="float32" | "float64"):
            return st.floats(width=8 * type_.size, allow_nan=False)
        case types.Primitive():
            return st.integers(type_.low, type_.high)
        case types.Bits():
            return st.integers(0, 3).map(type_.cls)
        case types.Enum():
            return st.integers(-5, 5).map(type_.cls)
        case types.String():
            return st.text(max_size=min(type_.bound, 20) // 4)
        case types.Vector(element=types.Primitive(name="uint8")):
            return st.binary(max_size=20)
        case types.Vector():
            bound = min(type_.bound, 4)
            return st.lists(values(type_.element, depth), max_size=bound)
        case types.Array():
            count = type_.count
            return st.lists(values(type_.element, depth), min_size=count, max_size=count)
    return _objects(type_, depth)


def _objects(type_: Any, depth: int) -> st.SearchStrategy[Any]:
    match type_:
        case types.Union():
            members = type_.members[: 3 if depth > 4 else 4]
            return st.one_of(
                values(m.type, depth).map(lambda v, m=m: type_.cls(**{m.python_name: v}))
                for m in members
            )
        case types.Table():
            members = type_.members[: 3 if depth > 4 else 4]
            found = {m.python_name: st.none() | values(m.type, depth) for m in members}
            return st.fixed_dictionaries(found).map(lambda v: type_.cls(**v))
        case types.Struct():
            found = {m.python_name: values(m.type, depth) for m in type_.members}
            return st.fixed_dictionaries(found).map(lambda v: type_.cls(**v))
    raise TypeError(type_)


EVERYTHING = st.deferred(lambda: values(ALL.Everything.TYPE))


@given(EVERYTHING)
def test_any_value_is_equal_after_encoding_and_decoding(value: Any) -> None:
    data, handles = codec.encode(value)
    assert len(data) % 8 == 0
    assert not handles
    assert codec.decode(ALL.Everything, data) == value


@given(EVERYTHING, st.data())
def test_message_with_one_changed_byte_is_refused_or_decoded(
    value: Any, data: st.DataObject
) -> None:
    message, _ = codec.encode(value)
    at = data.draw(st.integers(0, len(message) - 1))
    byte = data.draw(st.integers(0, 255))
    check(ALL.Everything, message[:at] + bytes([byte]) + message[at + 1 :], [])


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, bytes, int, int]:
    """Generate a message of a test vector with some changes."""
    name, seed, handles, wire = draw(st.sampled_from(SEEDS))
    message = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(message)))
        match draw(st.sampled_from(["byte", "word", "cut", "insert", "repeat", "handles", "wire"])):
            case "byte":
                message[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "word":
                at -= at % 8
                message[at : at + 8] = draw(st.sampled_from(WORDS)).to_bytes(8, "little")
            case "cut":
                del message[at : at + draw(st.integers(1, 16))]
            case "insert":
                message[at:at] = draw(st.binary(min_size=1, max_size=16))
            case "repeat":
                message += message[at : at + 64]
            case "handles":
                handles = draw(st.integers(0, 5))
            case "wire":
                wire = 3 - wire
    return name, bytes(message), handles, wire


@given(mutations())
def test_mutated_message_is_refused_or_decoded(mutation: tuple[str, bytes, int, int]) -> None:
    name, message, count, wire = mutation
    with open_handles(count) as handles:
        check(getattr(TYPES, name), message, handles, wire)


@given(st.sampled_from(sorted({name for name, *_ in SEEDS})), st.binary(max_size=256))
def test_random_message_is_refused_or_decoded(name: str, message: bytes) -> None:
    check(getattr(TYPES, name), message, [])


@given(
    st.integers(0, (1 << 64) - 1), st.sampled_from(["Vector_uint64", "Texts", "Boxes", "OneTable"])
)
def test_message_with_a_huge_element_count_allocates_no_memory(count: int, name: str) -> None:
    message = count.to_bytes(8, "little") + b"\xff" * 8 + bytes(64)
    codec.decode(TYPES.Empty, bytes(8))
    tracemalloc.start()
    try:
        check(getattr(TYPES, name), message, [])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_negative_zero_and_infinities_are_equal_after_encoding_and_decoding() -> None:
    for value in (-0.0, math.inf, -math.inf):
        data, _ = codec.encode(TYPES.One_float64(x=value))
        found = codec.decode(TYPES.One_float64, data).x
        assert math.copysign(1, found) == math.copysign(1, value)
