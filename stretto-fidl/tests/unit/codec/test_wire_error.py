"""Codec errors name the path in the value and the offset in the message."""

from __future__ import annotations

import pytest

from fidl_support.ir import library
from stretto_fidl import codec
from stretto_fidl.bindings import load

TYPES = load(
    library(
        structs={
            "Leaf": "a uint32, flag bool",
            "Branch": "leaves vector<Leaf>, grid array<Leaf,2>, either Either?",
            "Root": "name string, branch Branch, boxed Branch?, options Options",
        },
        tables={"Options": "1: level uint8, 3: leaf Leaf"},
        unions={"Either": "1: leaf Leaf, 2: many vector<Leaf>"},
    )
)


def root():
    def leaf():
        return TYPES.Leaf(a=1, flag=False)

    branch = TYPES.Branch(leaves=[leaf(), leaf()], grid=[leaf(), leaf()])
    boxed = TYPES.Branch(leaves=[leaf()], grid=[leaf(), leaf()], either=TYPES.Either(many=[leaf()]))
    options = TYPES.Options(leaf=leaf())
    return TYPES.Root(name="x", branch=branch, boxed=boxed, options=options)


PLACES = [
    ("branch.leaves[1].flag", lambda r: r.branch.leaves[1]),
    ("branch.grid[1].flag", lambda r: r.branch.grid[1]),
    ("boxed.grid[0].flag", lambda r: r.boxed.grid[0]),
    ("boxed.either.many[0].flag", lambda r: r.boxed.either.value[0]),
    ("options.leaf.flag", lambda r: r.options.leaf),
]


@pytest.mark.parametrize(("path", "leaf"), PLACES)
def test_encoding_error_names_the_path_of_the_value(path: str, leaf) -> None:
    value = root()
    leaf(value).flag = 2
    with pytest.raises(codec.WireError) as raised:
        codec.encode(value)
    assert str(raised.value).startswith(f"{path}: a bool is expected, not a int (WRONG_TYPE")
    assert raised.value.offset is None


@pytest.mark.parametrize(("path", "leaf"), PLACES)
def test_error_of_a_number_out_of_range_names_the_path_of_the_number(path: str, leaf) -> None:
    value = root()
    leaf(value).a = -1
    with pytest.raises(codec.WireError) as raised:
        codec.encode(value)
    assert str(raised.value).startswith(f"{path.replace('flag', 'a')}: -1 is not in 0 … 4294967295")


@pytest.mark.parametrize(("path", "leaf"), PLACES)
def test_decoding_error_names_the_path_and_the_offset(path: str, leaf) -> None:
    plain, _ = codec.encode(root())
    value = root()
    leaf(value).flag = True
    changed, _ = codec.encode(value)
    (at,) = (index for index, byte in enumerate(plain) if byte != changed[index])
    with pytest.raises(codec.WireError) as raised:
        codec.decode(TYPES.Root, plain[:at] + b"\2" + plain[at + 1 :])
    assert raised.value.offset == at
    expected = f"{path}: a bool is 0 or 1, not 2 (INVALID_BOOLEAN, at byte {at})"
    assert str(raised.value) == expected


def test_error_in_padding_has_the_offset_of_the_padding() -> None:
    data, _ = codec.encode(root())
    for at in (*range(37, 40), *range(45, 48)):
        with pytest.raises(codec.WireError) as raised:
            codec.decode(TYPES.Root, data[:at] + b"\1" + data[at + 1 :])
        assert raised.value.code == "INVALID_PADDING_BYTE"
        assert raised.value.offset in (37, 45)


def test_error_in_a_table_envelope_has_the_offset_of_the_envelope() -> None:
    types = load(library(structs={"S": "t T"}, tables={"T": "1: a uint8, 2: b uint8"}))
    data, _ = codec.encode(types.S(t=types.T(a=1, b=2)))
    for at in (16, 24):
        with pytest.raises(codec.WireError) as raised:
            codec.decode(types.S, data[: at + 6] + b"\7" + data[at + 7 :])
        assert (raised.value.code, raised.value.offset) == ("INVALID_INLINE_MARKER_IN_ENVELOPE", at)
