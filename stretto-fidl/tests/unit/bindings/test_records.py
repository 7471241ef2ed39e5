"""Tests of the Python classes of structs, tables and unions."""

from __future__ import annotations

import pytest

from fidl_support.ir import library
from stretto_fidl.bindings import load, redacted
from stretto_fidl.bindings.printing import excerpt_of
from stretto_fidl.codec import WireError, decode, encode
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import FidlError

TYPES = load(
    library(
        structs={
            "Point": "x int32, y int32",
            "Line": "from Point, to Point, label string?",
            "Account": "name string, @password string, @tokens vector<string>, keys vector<Key>",
            "Empty": "",
        },
        tables={"Options": "1: level uint8, 3: @secret string, 4: point Point"},
        unions={"Shape": "1: point Point, 2: line Line, 5: @code uint32, 6: value uint8"},
        enums={"Key": ("strict", "uint8", {"A": 1, "B": 2})},
    )
)
Point, Line, Options, Shape = TYPES.Point, TYPES.Line, TYPES.Options, TYPES.Shape


class TestStructClass:
    def test_struct_members_are_attributes(self) -> None:
        point = Point(x=1, y=-2)
        point.x = 5
        assert (point.x, point.y) == (5, -2)

    def test_structs_with_equal_members_are_equal(self) -> None:
        assert Point(x=1, y=2) == Point(x=1, y=2)
        assert Point(x=1, y=2) != Point(x=1, y=3)
        assert Point(x=1, y=2) != (1, 2)
        with pytest.raises(TypeError):
            hash(Point(x=1, y=2))

    def test_optional_members_may_be_omitted(self) -> None:
        line = Line(from_=Point(x=1, y=2), to=Point(x=3, y=4))
        assert line.label is None

    def test_member_named_like_a_python_keyword_gets_an_underscore(self) -> None:
        assert Line.__slots__ == ("from_", "to", "label")
        assert repr(Line(from_=Point(x=1, y=2), to=Point(x=3, y=4), label="a")) == (
            "Line(from_=Point(x=1, y=2), to=Point(x=3, y=4), label='a')"
        )

    def test_missing_and_unknown_struct_members_are_refused(self) -> None:
        with pytest.raises(TypeError, match="'y'"):
            Point(x=1)
        with pytest.raises(TypeError, match="'z'"):
            Point(x=1, y=2, z=3)
        with pytest.raises(TypeError):
            Point(1, 2)
        with pytest.raises(AttributeError):
            Point(x=1, y=2).z = 3

    @pytest.mark.parametrize(
        ("members", "message"),
        [
            ({"x": "1", "y": 2}, r"x: a int32 \(an int\) is expected, not a str"),
            ({"x": 1, "y": None}, r"y: a int32 \(an int\) is required, and absent"),
            ({"x": True, "y": 2}, r"x: .* not a bool"),
            ({"x": 1 << 31, "y": 2}, r"x: 2147483648 is not in -2147483648 … 2147483647"),
        ],
    )
    def test_struct_members_of_a_wrong_type_are_refused(self, members: dict, message: str) -> None:
        with pytest.raises(WireError, match=message):
            Point(**members)

    def test_object_of_a_wrong_class_is_refused(self) -> None:
        with pytest.raises(WireError, match="from: a Point is expected, not a Empty"):
            Line(from_=TYPES.Empty(), to=Point(x=1, y=2))

    def test_invalid_member_raises_a_fidl_error(self) -> None:
        with pytest.raises(FidlError):
            Point(x="1", y=2)


class TestTableClass:
    def test_all_members_of_a_table_may_be_absent(self) -> None:
        options = Options()
        assert (options.level, options.secret, options.point) == (None, None, None)
        assert repr(options) == "Options()"

    def test_equality_and_repr_of_a_table_use_its_present_members(self) -> None:
        options = Options(level=3)
        assert options == Options(level=3)
        assert options != Options()
        assert repr(options) == "Options(level=3)"
        with pytest.raises(WireError, match="level: 300 is not in 0"):
            Options(level=300)


class TestUnionClass:
    def test_union_has_the_member_given_to_its_constructor(self) -> None:
        shape = Shape(point=Point(x=1, y=2))
        assert shape.which == "point"
        assert shape.ordinal == 1
        assert shape.value == shape.point == Point(x=1, y=2)
        assert shape.line is None
        assert not shape.is_unknown
        assert repr(shape) == "Shape(point=Point(x=1, y=2))"

    def test_member_named_value_gets_an_underscore(self) -> None:
        assert Shape(value_=7).value_ == Shape(value_=7).value == 7
        assert Shape(value_=7).which == "value_"
        assert Shape(point=Point(x=1, y=2)).value_ is None

    def test_unions_with_equal_members_are_equal(self) -> None:
        assert Shape(code=1) == Shape(code=1)
        assert Shape(code=1) != Shape(code=2)
        assert Shape(code=1) != Shape(value_=1)
        assert Shape(code=1) != 1

    def test_union_with_none_or_two_members_is_refused(self) -> None:
        for members in ({}, {"code": 1, "value": 2}):
            with pytest.raises(WireError, match="Shape takes exactly one of its members"):
                Shape(**members)
        with pytest.raises(TypeError, match="Shape has no member nothing, but point, line"):
            Shape(nothing=1)

    def test_union_members_of_a_wrong_type_are_refused(self) -> None:
        with pytest.raises(WireError, match="code: a uint32"):
            Shape(code="1")

    def test_union_with_an_unknown_ordinal_has_no_member_and_shows_the_ordinal(self) -> None:
        shape = Shape._make(99, None)
        assert shape.is_unknown
        assert shape.which is None
        assert repr(shape) == "Shape(<unknown 99>)"


class TestSensitiveValues:
    def test_sensitive_members_are_redacted_in_repr(self) -> None:
        account = TYPES.Account(name="me", password="pw", tokens=["a", "b"], keys=[TYPES.Key.A])
        assert redacted(account) == (
            "Account(name='me', password=<sensitive>, tokens=<sensitive>, keys=[Key.A])"
        )
        assert repr(account) == str(account) == redacted(account)
        assert account.password == "pw"

    def test_sensitive_members_of_tables_and_unions_are_redacted(self) -> None:
        assert redacted([Options(secret="x"), Shape(code=5), Shape(value_=5)]) == (
            "[Options(secret=<sensitive>), Shape(code=<sensitive>), Shape(value_=5)]"
        )
        assert redacted(Options()) == "Options()"

    def test_values_of_sensitive_types_are_redacted(self) -> None:
        ir = library(
            structs={"Key": "data vector<uint8>", "Ring": "keys vector<Key>, one Key?, lock Lock"},
            enums={"Lock": ("flexible", "uint8", {"OPEN": 1})},
        )
        for declaration in (ir["struct_declarations"][0], ir["enum_declarations"][0]):
            declaration["maybe_attributes"] = [{"name": "sensitive", "arguments": []}]
        types = load(ir)
        key = types.Key(data=b"secret")
        assert redacted(key) == "<sensitive>"
        assert redacted([key]) == repr([key]) == "[<sensitive>]"
        assert f"{types.Lock.OPEN}" == repr(types.Lock(7)) == "<sensitive>"
        assert int(types.Lock.OPEN) == 1
        assert redacted(types.Ring(keys=[key], one=key, lock=1)) == (
            "Ring(keys=<sensitive>, one=<sensitive>, lock=<sensitive>)"
        )

    def test_sensitive_aliases_and_new_types_are_redacted(self) -> None:
        names = load(compile_sources({"aliases.fidl": ALIASES}))
        secret = "hunter2"
        box = names.Box(
            one=secret, many=[[secret]], other=secret, several=[secret], new=secret, shown="me"
        )
        assert redacted(box) == (
            "Box(one=<sensitive>, many=<sensitive>, other=<sensitive>, several=<sensitive>, "
            "new=<sensitive>, shown='me')"
        )
        assert excerpt_of(names.Choice(one=secret)) == {"one": "<sensitive>"}
        assert excerpt_of(names.Sheet(one=[secret])) == {"one": "<sensitive>"}

    def test_sensitive_aliases_of_another_library_are_redacted(self) -> None:
        ir = compile_sources({"user.fidl": USER}, dependencies={"aliases.fidl": ALIASES})
        aliases = load(compile_sources({"aliases.fidl": ALIASES}))
        expected = "User(one=<sensitive>, many=<sensitive>, shown='me')"
        assert redacted(load(ir).User(one="a", many=["b"], shown="me")) == expected
        # Make the IR like that of Fuchsia's compiler, which doesn't copy `@sensitive` to members.
        for member in ir["struct_declarations"][0]["members"]:
            member.pop("maybe_attributes", None)
        assert redacted(load(ir, [aliases]).User(one="a", many=["b"], shown="me")) == expected

    def test_sensitive_attribute_of_a_library_or_a_type_redacts_all_its_values(self) -> None:
        """Fuchsia's compiler doesn't copy `@sensitive` to members, so the bindings do."""
        mark = [{"name": "sensitive", "arguments": []}]
        ir = library(structs={"Key": "data vector<uint8>"})
        assert repr(load(ir).Key(data=b"")) == "Key(data=b'')"
        assert repr(load({**ir, "maybe_attributes": mark}).Key(data=b"")) == "<sensitive>"
        ir = library(enums={"Lock": ("flexible", "uint8", {"OPEN": 1, "SHUT": 2})})
        ir["enum_declarations"][0]["members"][0]["maybe_attributes"] = mark
        assert repr(load(ir).Lock.SHUT) == "<sensitive>"

    @pytest.mark.parametrize("wrong", [
        "Pin(code=4242)", "Pin(lock=4242)", "Pin(digits=[4242])", "Case(pin=[4242])",
        "Sheet(codes=[4242])", "Case(code=4242)", "Lock(4242)", "Flags(0x1092)", "Whole(code=4242)",
        "Whole(inner=Inner(codes=[4242]))",
    ])  # fmt: skip
    def test_encoding_errors_do_not_show_sensitive_values(self, wrong: str) -> None:
        names = vars(load(compile_sources({"pins.fidl": PINS})))
        with pytest.raises(WireError) as caught:
            encode(eval(wrong, names))
        assert "sensitive" in str(caught.value)
        for text in (str(caught.value), repr(caught.value), *map(str, caught.value.args)):
            assert "4242" not in text
            assert "1092" not in text

    def test_decoding_errors_do_not_show_sensitive_values(self) -> None:
        names = load(compile_sources({"pins.fidl": PINS}))
        data, _ = encode(names.Pin(lock=1))
        with pytest.raises(WireError) as caught:
            decode(names.Pin, data.replace(b"\x01", b"\x4d"))
        assert str(caught.value) == (
            "lock: Lock has no value <sensitive> (STRICT_ENUM_UNKNOWN_VALUE, at byte 1)"
        )
        with pytest.raises(WireError, match="on: a sensitive value is wrong"):
            decode(names.Switch, b"\x4d" + bytes(7))


PINS = """
library test.pins;
@sensitive type Lock = strict enum : uint8 { OPEN = 1; };
@sensitive type Flags = strict bits : uint16 { A = 1; };
@allow_deprecated_struct_defaults
type Pin = struct {
    @sensitive code uint8 = 1;
    lock Lock = Lock.OPEN;
    @sensitive digits vector<int8>:optional;
};
type Case = union { @sensitive 1: pin vector<int8>; @sensitive 2: code uint8; };
type Sheet = table { @sensitive 1: codes vector<int8>; };
type Inner = struct { codes array<int8, 1>; };
@sensitive
type Whole = table { 1: code uint8; 2: inner Inner; };
type Switch = struct { @sensitive on bool; };
"""
USER = """
library test.user;
using test.aliases;
type User = struct {
    one test.aliases.Other;
    many test.aliases.Several;
    shown test.aliases.Plain;
};
"""
ALIASES = """
library test.aliases;
@sensitive
alias Password = string:20;
alias Other = Password;
alias Several = vector<Other>;
alias Plain = string:20;
@sensitive
type New = string:20;
type Box = struct {
    one Password;
    many vector<array<Password, 1>>;
    other Other;
    several Several;
    new New;
    shown Plain;
};
type Choice = union { 1: one Password; };
type Sheet = table { 1: one vector<Password>; };
"""
