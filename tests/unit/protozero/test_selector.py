from __future__ import annotations

from typing import Any

import pytest

from stretto.base.errors import ConfigError
from stretto.protozero import selector, selector_pure, wire
from stretto.protozero.message import Message
from stretto.protozero.selector import select
from stretto.protozero.table import Table

native: Any = pytest.importorskip("stretto._native")


@pytest.fixture(autouse=True, params=["native", "pure"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = native if request.param == "native" else selector_pure
    monkeypatch.setattr(selector, "Selector", chosen.Selector)


@pytest.fixture
def sample() -> type[Message]:
    table = Table(
        __name__,
        {
            "Outer": "number 1 uint64\ntext 2 string\nblob 3 bytes\ninner 4 message:Inner\n"
            "numbers 5 sint32 repeated\nflags 6 bool packed\nreal 7 double\nsmall 8 float\n"
            "inners 9 message:Inner repeated\nnames 10 map:string,uint32\nfixeds 11 fixed32 packed",
            "Inner": "value 1 int32\ndeeper 2 message:Inner\nmore 3 fixed64 repeated",
        },
        {},
    )
    made: type[Message] = table.find("Outer")
    return made


class TestSelectedValues:
    def test_row_contains_the_values_of_all_selected_paths(self, sample: type[Message]) -> None:
        message = sample(number=2**64 - 1, text="é\udcff", blob=b"\xff", real=0.1, small=0.5)
        message.numbers = [-1, 1]
        message.flags = [True, False]
        message.fixeds = [7, 2**32 - 1]
        inner = type(message).LAYOUT.field("inner").codec.message_class
        message.inner = inner(value=-5, deeper=inner(value=6, more=[1, 2]))
        message.inners = [inner(value=1), inner(value=2)]
        paths = (
            "inner.deeper.more inner.value number text blob real small numbers flags fixeds"
            " inner.deeper.value inner.deeper inners inner.deeper.deeper.value inners.value"
        ).split()
        row = select(sample, *paths)(message.encode())
        assert dict(zip(paths, row, strict=True)) == {
            "number": 2**64 - 1,
            "text": "é\udcff",
            "blob": b"\xff",
            "real": 0.1,
            "small": 0.5,
            "numbers": [-1, 1],
            "flags": [True, False],
            "fixeds": [7, 2**32 - 1],
            "inner.value": -5,
            "inner.deeper": inner(value=6, more=[1, 2]).encode(),
            "inner.deeper.value": 6,
            "inner.deeper.more": [1, 2],
            "inner.deeper.deeper.value": None,
            "inners": [inner(value=1).encode(), inner(value=2).encode()],
            "inners.value": 2,
        }

    def test_missing_values_are_none_or_an_empty_list(self, sample: type[Message]) -> None:
        row = select(sample, "number", "inner.deeper.value", "numbers", "inner")
        assert row(b"") == (None, None, [], None)
        assert select(sample)(b"\x08\x01") == ()

    def test_last_of_several_values_is_selected(self, sample: type[Message]) -> None:
        data = b"".join(
            wire.varint_field(1, n) + wire.bytes_field(4, wire.varint_field(1, n)) for n in (1, 2)
        )
        assert select(sample, "number", "inner.value")(data + wire.bytes_field(4, b"")) == (2, None)

    def test_fields_of_a_wrong_wire_type_are_ignored(self, sample: type[Message]) -> None:
        data = wire.bytes_field(1, b"x") + wire.varint_field(2, 5) + wire.varint_field(4, 1)
        data += b"\x2d1234"  # The field `numbers` with a wrong wire type, fixed32.
        assert select(sample, "number", "text", "inner.value", "numbers")(data) == (
            None,
            None,
            None,
            [],
        )

    def test_packed_and_unpacked_elements_are_both_selected(self, sample: type[Message]) -> None:
        data = wire.varint_field(5, 1) + wire.bytes_field(5, b"\x02\x04") + wire.varint_field(6, 1)
        assert select(sample, "numbers", "flags")(data) == ([-1, 1, 2], [True])

    def test_values_before_malformed_data_are_selected(self, sample: type[Message]) -> None:
        torn = wire.bytes_field(5, b"\x02\x80") + wire.bytes_field(11, b"\1\0\0\0\1")
        assert select(sample, "numbers", "fixeds")(torn) == ([1], [1])
        assert select(sample, "number", "text")(b"\x08\x01\x12\x05x") == (1, None)


class TestFieldPaths:
    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("nothing", "no field 'nothing'"),
            ("inner.nothing", "no field"),
            ("number.x", "no message"),
            ("names", "is a map"),
            ("", "no field"),
        ],
    )
    def test_invalid_path_is_refused(self, sample: type[Message], path: str, why: str) -> None:
        with pytest.raises(ConfigError, match=why):
            select(sample, path)

    def test_path_listed_twice_is_refused(self, sample: type[Message]) -> None:
        with pytest.raises(ConfigError, match="twice"):
            select(sample, "text", "text")


class TestColumnTrees:
    """Invalid trees of columns, passed to the native selector directly."""

    @pytest.mark.parametrize(
        ("columns", "tree"),
        [
            (1, []),
            (-1, []),
            (1, [(1, "uint32", False, 1, [])]),
            (1, [(1, "uint32", False, -2, [])]),
            (1, [(1, "nothing", False, 0, [])]),
            (1, [(1, "uint32", False, 0, []), (2, "uint32", False, 0, [])]),
            (2, [(1, "uint32", False, 0, [])]),
            (65, [(n, "uint32", False, n, []) for n in range(65)]),
        ],
    )
    def test_selector_with_invalid_column_numbers_is_refused(
        self, columns: int, tree: list[Any]
    ) -> None:
        with pytest.raises(ValueError, match=r"column|at most"):
            native.Selector(columns, tree)

    def test_tree_entry_that_is_no_tuple_is_refused(self) -> None:
        with pytest.raises(TypeError, match="tuple"):
            native.Selector(1, [5])

    def test_too_deep_tree_is_refused(self) -> None:
        tree: list[Any] = [(1, "uint32", False, 0, [])]
        for _ in range(40):
            tree = [(1, "message", False, -1, tree)]
        with pytest.raises(ValueError, match="levels deep"):
            native.Selector(1, tree)
