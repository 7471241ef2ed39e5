"""Conversion of event arguments of every type to debug annotations."""

from __future__ import annotations

import enum
import sys
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest

import stretto
from stretto import _native
from tests.support.recorded_events import record
from tests.support.shown_argument import CATEGORY, shown

LIMIT = 4096


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.IntEnum):
    RED = 3


class Level(enum.Enum):
    HIGH = "high"


class Flags(enum.IntFlag):
    A = 1
    B = 2


class Text(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError

    __repr__ = __len__ = __getitem__ = __iter__ = __str__


class Number(int):
    def __int__(self):
        raise RuntimeError

    __index__ = __repr__ = __str__ = __int__


class Mapping(dict):
    def items(self):
        raise RuntimeError

    __iter__ = keys = values = __len__ = __getitem__ = __repr__ = items


class Endless(list):
    def __iter__(self):
        while True:
            yield 1

    def __len__(self):
        return 10**9


class EndlessSet(set):
    __iter__ = Endless.__iter__
    __len__ = Endless.__len__


class EndlessTuple(tuple):
    __slots__ = ()
    __iter__ = Endless.__iter__
    __len__ = Endless.__len__


class Index:
    def __index__(self):
        return 7


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (-1, -1),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        # Larger ints are strings: the trace processor would read a uint64 as a negative number.
        (2**63, str(2**63)),
        (2**64 - 1, str(2**64 - 1)),
        (2**64, str(2**64)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        (True, True),
        (False, False),
        (None, "None"),
        (1.5, 1.5),
        (float("inf"), float("inf")),
        ("", ""),
        ("text", "text"),
        ("äöü€𝄞", "äöü€𝄞"),
        ("nul\0inside", "nul\0inside"),
        ("\ud800 lone \udfff", "\\ud800 lone \\udfff"),
        (b"", "b''"),
        (b"\0\xff", "b'\\x00\\xff'"),
        (bytearray(b"ab"), "bytearray(b'ab')"),
        ([], "[]"),
        ((), "()"),
        ({}, "{}"),
        (set(), "set()"),
        ([[], {}], ["[]", "{}"]),
        ([1, "two", 3.0, None, True, b"x"], [1, "two", 3.0, "None", True, "b'x'"]),
        ((1, (2, 3)), [1, [2, 3]]),
        ({1}, [1]),
        (frozenset({1}), [1]),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}),
        ({1: 2, None: 3, (4, 5): 6}, {"1": 2, "None": 3, "(4, 5)": 6}),
        (OrderedDict(a=1, b=2), {"a": 1, "b": 2}),
        (Point(1, 2), [1, 2]),
        (Colour.RED, 3),
        (Flags.A | Flags.B, 3),
        (Level.HIGH, "<Level.HIGH: 'high'>"),
        (Decimal("1.50"), "Decimal('1.50')"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (1 + 2j, "(1+2j)"),
        (Text("text"), "text"),
        (Number(5), 5),
        (Number(2**70), str(2**70)),
        (Mapping(a=1), {"a": 1}),
        (Endless([1, 2]), [1, 2]),
        (EndlessSet({1}), [1]),
        (EndlessTuple((1, 2)), [1, 2]),
        (Index(), 7),
        (range(3), "range(0, 3)"),
        (int, "<class 'int'>"),
    ],
    # The default ids would be reprs, which some of the values don't have.
    ids=lambda value: type(value).__name__,
)
def test_values_are_recorded_as_the_matching_type(value, expected):
    before = _native.argument_errors()
    found = shown(value)
    assert (found, type(found)) == (expected, type(expected))
    assert _native.argument_errors() == before


def test_nan_is_recorded():
    assert str(shown(float("nan"))) == "nan"


def test_ints_too_long_for_decimal_conversion_are_recorded_in_hexadecimal():
    with pytest.raises(ValueError, match="digits"):
        str(10**5000)
    found = shown(-(10**5000))
    assert found.startswith(hex(-(10**5000))[:100])
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert shown(10**700) == hex(10**700)
        sys.set_int_max_str_digits(0)
        assert shown(1 << 10_000_000).startswith("0x1000")
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("value", "mark"),
    [
        ("x" * 100_000, "... [truncated, 100000 characters]"),
        ("€" * 4096, "... [truncated, 4096 characters]"),
        ("a€" * 2000, "... [truncated, 4000 characters]"),
        (b"x" * 100_000, "... [truncated, 100000 bytes]"),
        (bytearray(b"x" * 100_000), "... [truncated, 100000 bytes]"),
        (b"\0" * 2000, "... [truncated, 8003 characters]"),
        ([0] * 100_000, None),
    ],
)
def test_long_values_are_cut_and_marked(value, mark):
    found = shown(value)
    if mark is None:
        assert found[-1].startswith("... [truncated, ")
        assert int(found[-1].split()[2]) == len(value) - len(found) + 1
    else:
        assert found.endswith(mark)
        assert LIMIT - 8 < len(found.encode()) <= LIMIT


def test_events_of_one_call_site_may_be_short_and_long():
    texts = ["", 200 * "x", 127 * "y", "z", 2000 * "é", 300 * "v", "w", 90 * "u"] * 20
    with record() as recorded:
        for number, text in enumerate(texts):
            CATEGORY.instant("x", text=text, number=-number)
    expected = [{"text": text, "number": -n} for n, text in enumerate(texts)]
    assert [event.args for event in recorded.events] == expected


def test_strings_of_maximum_length_are_not_cut():
    assert shown("x" * LIMIT) == "x" * LIMIT
    assert shown("€" * 1365) == "€" * 1365


def test_long_containers_end_with_the_number_of_omitted_elements():
    found = shown({str(key): key for key in range(10_000)})
    assert found.pop("...") == f"... [truncated, {10_000 - len(found)} more]"
    assert found == {str(key): key for key in range(len(found))}
    found = shown(set(range(10_000)))
    assert found[-1] == f"... [truncated, {10_000 - len(found) + 1} more]"


def test_list_elements_beyond_the_limit_are_not_converted():
    """The list has ten million elements; a copy would take seconds and 80 MB."""

    class Counted:
        count = 0

        def __repr__(self):
            Counted.count += 1
            return "counted"

    CATEGORY.instant("off", value=[Counted()])
    assert Counted.count == 0
    with record():
        CATEGORY.instant("on", value=[Counted()] * 10_000_000)
    assert 0 < Counted.count < 1000


def test_conversion_does_not_cache_utf8_in_the_string():
    """PyUnicode_AsUTF8 would keep a copy in the string object."""
    text = "€" * 1_000_000
    before = sys.getsizeof(text)
    with record():
        CATEGORY.instant("x", text=text)
    assert sys.getsizeof(text) == before


def test_self_containing_containers_are_cut_at_depth_16():
    values = [1]
    values.append(values)
    table = {}
    table["self"] = table
    depth, found = 0, shown(values)
    while isinstance(found, list):
        depth, found = depth + 1, found[1]
    assert (depth, found) == (16, "... [nested too deep]")
    assert "nested too deep" in str(shown(table))
    wide = []
    wide.extend([wide] * 100)
    assert len(str(shown(wide))) < 100_000


@pytest.mark.parametrize("count", [1, 6, 7, 32, 33, 64, 65, 100, 128])
def test_up_to_128_arguments_are_recorded(count):
    arguments = {f"argument {number}": number for number in range(count)}
    with record() as recorded:
        CATEGORY.instant("instant", **arguments)
        CATEGORY.instant("args", args=arguments)
        with CATEGORY.slice("slice", track=stretto.Track("t"), **arguments):
            pass
        with CATEGORY.slice("slice", **arguments, timestamp=stretto.now()):
            pass
    assert [event.args for event in recorded.events if event.args] == [arguments] * 4


def test_arguments_beyond_128_are_omitted_and_counted():
    before = _native.argument_errors()
    arguments = {f"argument {number}": str(number) for number in range(300)}
    with record() as recorded, CATEGORY.slice("slice", **arguments):
        pass
    found = recorded.one("slice").args
    assert found.pop("...") == "[truncated, 172 more]"
    assert found == dict(list(arguments.items())[:128])
    assert _native.argument_errors() == before + 172


def test_argument_names_that_equal_parameters_can_be_passed_in_args():
    collide = {"track": 1, "flow": 2, "timestamp": 3, "args": 4, "name": 5, "terminating_flow": 6}
    with record() as recorded:
        CATEGORY.instant("x", args=collide, name=7, self=8)
        with CATEGORY.slice("y", args=collide):
            pass
    assert recorded.one("x").args in ({**collide, "name": value, "self": 8} for value in (5, 7))
    assert recorded.one("y").args == collide


def test_options_in_a_keyword_dict_are_recognized():
    """Names passed by `**` need not be interned strings."""
    track = stretto.Track("t")
    names = {"".join(["tr", "ack"]): track, "".join(["time", "stamp"]): 5, "".join(["fl", "ow"]): 9}
    with record() as recorded:
        CATEGORY.instant("x", **names, other=1)
        many = {f"k{number}": number for number in range(40)}
        CATEGORY.instant("y", **many, **names)
    for name, args in ("x", {"other": 1}), ("y", many):
        event = recorded.one(name)
        assert (event.args, event.track, event.timestamp, event.flows) == (args, track.uuid, 5, [9])


def test_argument_names_that_are_not_strings_are_converted():
    class Traces:
        def __str__(self):
            CATEGORY.instant("inner", args={2: 2})
            return "traces"

    class Raises:
        __str__ = None

    before = _native.argument_errors()
    names = {1: "one", 2.5: "half", None: "none", ("a", 1): "pair", Traces(): "t", Raises(): "?"}
    with record() as recorded:
        for _ in range(3):
            CATEGORY.instant("x", args={**names, "two": 2})
    expected = {"1": "one", "2.5": "half", "None": "none", "('a', 1)": "pair"}
    for event in recorded.events:
        if event.name == "x":
            assert event.args == {**expected, "traces": "t", "?": "?", "two": 2}
        else:
            assert event.args == {"2": 2}
    assert len(recorded.events) == 6
    assert _native.argument_errors() == before + 3


def test_long_and_unusual_argument_names_are_recorded():
    names = ["", "a b", "x" * 256, "x" * 257, "€" * 2000, "\ud800", "nul\0"]
    with record() as recorded:
        CATEGORY.instant("x", args=dict.fromkeys(names, 1))
    found = list(recorded.event.args)
    assert found[:4] == names[:4]
    assert found[4] == "€" * (LIMIT // 3)
    assert found[5:] == ["\\ud800", "nul\0"]
