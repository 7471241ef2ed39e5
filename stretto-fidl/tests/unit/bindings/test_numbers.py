"""Tests of the Python classes of enums and bits."""

from __future__ import annotations

import pytest

from fidl_support.ir import library
from stretto_fidl.bindings import FrameworkError, load
from stretto_fidl.codec import WireError

TYPES = load(
    library(
        enums={
            "Color": ("strict", "uint8", {"RED": 1, "BLUE": 2}),
            "Level": ("flexible", "int16", {"LOW": -1, "HIGH": 1, "name": 3, "None": 4}),
        },
        bits={
            "Mode": ("strict", "uint8", {"READ": 1, "WRITE": 2}),
            "Open": ("flexible", "uint32", {"A": 1, "B": 4}),
        },
    )
)
Color, Level, Mode, Open = TYPES.Color, TYPES.Level, TYPES.Mode, TYPES.Open


class TestEnumClass:
    def test_enum_members_are_ints_with_names(self) -> None:
        assert Color.RED == 1
        assert isinstance(Color.RED, Color)
        assert Color(2).name == "BLUE"
        assert repr(Color(2)) == str(Color.BLUE) == "Color.BLUE"

    def test_unknown_value_of_a_strict_enum_is_refused(self) -> None:
        with pytest.raises(WireError, match=r"Color has no value 3 \(STRICT_ENUM_UNKNOWN_VALUE"):
            Color(3)

    def test_unknown_value_of_a_flexible_enum_is_kept(self) -> None:
        level = Level(99)
        assert level.is_unknown
        assert level.name is None
        assert repr(level) == "Level(99)"
        assert not Level.HIGH.is_unknown

    @pytest.mark.parametrize(("value", "code"), [(1 << 15, "VALUE_OUT"), ("1", "WRONG_TYPE")])
    def test_enum_values_out_of_range_are_refused(self, value: object, code: str) -> None:
        with pytest.raises(WireError, match=code):
            Level(value)

    def test_member_names_taken_by_python_get_an_underscore(self) -> None:
        assert Level.name_ == 3
        assert Level.None_.name == "None"
        assert repr(Level(4)) == "Level.None_"

    def test_framework_error_has_the_member_unknown_method(self) -> None:
        assert FrameworkError.UNKNOWN_METHOD == -2


class TestBitsClass:
    def test_bits_are_combined_by_set_operators(self) -> None:
        both = Mode.READ | Mode.WRITE
        assert isinstance(both, Mode)
        assert both == 3
        assert both & Mode.READ == Mode.READ
        assert both ^ Mode.READ == Mode.WRITE
        assert both - Mode.WRITE == Mode.READ
        assert ~Mode.READ == Mode.WRITE
        assert Mode.READ in both
        assert Mode.WRITE not in Mode.READ
        assert Mode() == 0

    def test_repr_names_known_flags_and_shows_unknown_flags_as_hex(self) -> None:
        assert repr(Mode.READ | Mode.WRITE) == "Mode.READ | Mode.WRITE"
        assert repr(Mode()) == "Mode(0)"
        assert repr(Open(9)) == "Open.A | Open(0x8)"

    def test_unknown_flag_of_strict_bits_is_refused(self) -> None:
        with pytest.raises(WireError, match=r"Mode has no bit 0x4 \(STRICT_BITS_UNKNOWN_BIT"):
            Mode(5)

    def test_unknown_flags_of_flexible_bits_are_kept(self) -> None:
        assert Open(8).is_unknown
        assert not Open(5).is_unknown
