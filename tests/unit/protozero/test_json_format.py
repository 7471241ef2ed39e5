from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from stretto.base.errors import ConfigError
from stretto.protos.config import TraceConfig
from stretto.protozero import wire
from stretto.protozero.json_format import format_json, from_value, parse_json, to_value
from stretto.protozero.message import MAX_DEPTH
from tests.support.generated import load, module_of

SAMPLES = Path(__file__).parent
sample: Any = load(module_of(SAMPLES / "sample.proto", "stretto_sample_json")[1])
Everything: Any = sample.Everything
Inner: Any = sample.Everything.Inner

MESSAGE = Everything(
    a_int32=-5,
    a_int64=-(1 << 60),
    a_fixed64=1 << 63,
    a_float=0.1,
    a_double=1e300,
    a_bool=False,
    a_string="é",
    a_bytes=b"\xff\xfe",
    color=-1,
    shape=16,
    inner=Inner(value=1),
    many=[1, 2],
    strings=["a"],
    numbers={"a": 1},
    messages={-1: Inner()},
    blobs={True: b""},
    from_=1,
)
VALUE = {
    "aInt32": -5,
    "aInt64": str(-(1 << 60)),
    "aFixed64": str(1 << 63),
    "aFloat": 0.1,
    "aDouble": 1e300,
    "aBool": False,
    "aString": "é",
    "aBytes": "//4=",
    "color": "NEGATIVE",
    "shape": "SQUARE",
    "inner": {"value": 1},
    "many": [1, 2],
    "strings": ["a"],
    "numbers": {"a": 1},
    "messages": {"-1": {}},
    "blobs": {"true": ""},
    "from": 1,
}


def read(value: Any, *, lossy: bool = False) -> Any:
    return from_value(value, Everything, allow_unknown_fields=lossy)


class TestWritingJson:
    def test_message_is_written_as_a_json_object(self) -> None:
        assert to_value(MESSAGE) == VALUE
        assert json.loads(format_json(MESSAGE)) == VALUE
        assert to_value(Everything()) == {}

    def test_schema_names_can_be_written_instead_of_json_names(self) -> None:
        assert to_value(Everything(a_int32=1, from_=2), proto_names=True) == {
            "a_int32": 1,
            "from": 2,
        }

    def test_json_can_be_indented(self) -> None:
        assert format_json(Everything(a_int32=1), indent=1) == '{\n "aInt32": 1\n}'

    @pytest.mark.parametrize(
        ("value", "shown"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
    )
    def test_nan_and_infinity_are_strings(self, value: float, shown: str) -> None:
        assert to_value(Everything(a_double=value)) == {"aDouble": shown}
        assert str(read({"aDouble": shown}).a_double) == str(value)

    def test_unnamed_enum_values_are_numbers(self) -> None:
        message = Everything.decode(wire.varint_field(20, 99))
        assert to_value(message) == {"color": 99}
        assert read({"color": 99}) == message

    def test_strings_that_are_not_utf8_are_written_and_read_unchanged(self) -> None:
        message = Everything(a_string="a\udcff")
        text = format_json(message)
        assert text.isascii()
        assert parse_json(text, Everything) == message


class TestReadingJson:
    def test_json_object_is_read_as_a_message(self) -> None:
        assert read(VALUE) == MESSAGE
        assert parse_json(format_json(MESSAGE), Everything) == MESSAGE

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({"a_int32": 1}, {"a_int32": 1}),
            ({"aInt32": "12"}, {"a_int32": 12}),
            ({"aInt32": 1e3}, {"a_int32": 1000}),
            ({"aInt64": 5}, {"a_int64": 5}),
            ({"aDouble": "1.5e3"}, {"a_double": 1500.0}),
            ({"aDouble": 2}, {"a_double": 2.0}),
            ({"color": 1}, {"color": 1}),
            ({"color": "ROT"}, {"color": 1}),
            ({"aBytes": "-_8"}, {"a_bytes": b"\xfb\xff"}),
            ({"aBytes": "+/8="}, {"a_bytes": b"\xfb\xff"}),
            ({"aInt32": None, "many": None, "inner": None, "numbers": None}, {}),
            ({"chosenText": None, "chosenColor": "RED"}, {"chosen_color": 1}),
            ({"blobs": {"false": "YQ"}}, {"blobs": {False: b"a"}}),
        ],
    )
    def test_alternative_json_values_are_read(self, value: Any, expected: dict[str, Any]) -> None:
        assert read(value) == Everything(**expected)

    @pytest.mark.parametrize(
        ("value", "complaint"),
        [
            ([], "Everything: expected an object, got list"),
            ({"nothing": 1}, "Everything has no field 'nothing'"),
            ({"a_int31": 1}, "did you mean 'a_int32'"),
            ({"aInt32": 1.5}, r"Everything\.aInt32: expected int32"),
            ({"aInt32": "1.0"}, "expected int32"),
            ({"aInt32": True}, "expected int32, got True"),
            ({"aInt32": 1 << 31}, "expected int32"),
            ({"aUint64": "-1"}, "expected uint64"),
            ({"aBool": 1}, "expected bool, got 1"),
            ({"aBool": "true"}, "expected bool"),
            ({"aString": 1}, "expected string"),
            ({"aBytes": "%"}, "expected base64, got '%'"),
            ({"aBytes": 1}, "expected base64"),
            ({"aDouble": "x"}, "expected double, got 'x'"),
            ({"aDouble": "inf"}, "expected double"),
            ({"aFloat": 1e39}, "out of range for float"),
            ({"color": "BLUE"}, r"Everything\.color has no value 'BLUE'; it has COLOR_NONE, RED"),
            ({"color": 1.5}, "expected enum"),
            ({"inner": 1}, r"Everything\.inner: expected an object, got int"),
            ({"many": 1}, r"Everything\.many: expected an array, got int"),
            ({"many": [1, None]}, r"Everything\.many\[1\]: expected int32"),
            ({"inners": [{}, {"valu": 1}]}, r"Everything\.inners\[1\] has no field 'valu'"),
            ({"numbers": []}, "expected an object"),
            ({"numbers": {"a": None}}, r"Everything\.numbers\['a'\]: expected int32"),
            ({"messages": {"x": {}}}, r"messages\['x'\]: expected int32"),
            ({"blobs": {"1": ""}}, "expected bool"),
            ({"aInt32": 1, "a_int32": 2}, "'a_int32' and 'aInt32' exclude each other"),
            ({"chosenText": "", "chosenColor": 1}, "'chosenColor' and 'chosenText' exclude"),
        ],
    )
    def test_error_contains_the_path_of_the_value(self, value: Any, complaint: str) -> None:
        with pytest.raises(ConfigError, match=complaint):
            read(value)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ('{\n "aInt32" 1}', "no JSON, line 2, column 11: Expecting ':'"),
            ("", "no JSON, line 1"),
            ('{"aInt32": 1, "aInt32": 2}', "'aInt32' stands twice"),
            ('{"aDouble": NaN}', 'NaN is not JSON: write "NaN"'),
            ('{"aDouble": -Infinity}', "is not JSON"),
            ('{"aInt32": ' + "9" * 5000 + "}", "no field takes more than 20"),
            ('{"aInt32": "' + "9" * 5000 + '"}', "an integer of 5000 digits"),
            ("[" * 100_000, "nests too deeply"),
        ],
    )
    def test_malformed_json_is_refused(self, text: str, complaint: str) -> None:
        with pytest.raises(ConfigError, match=complaint):
            parse_json(text, Everything)

    def test_nesting_depth_is_limited(self) -> None:
        value: dict[str, Any] = {}
        for _ in range(MAX_DEPTH - 1):
            value = {"children": [value]}
        read({"inner": value})
        with pytest.raises(ConfigError, match="deeper than 100"):
            read({"inner": {"sibling": value}})

    def test_unknown_fields_can_be_ignored(self) -> None:
        value = {
            "nothing": {"a": 1},
            "color": "BLUE",
            "colors": {"1": "BLUE", "2": "RED"},
            "packedColors": ["BLUE", "RED"],
            "inner": {"nothing": 1},
        }
        expected = Everything(inner=Inner(), colors={2: 1}, packed_colors=[1])
        assert read(value, lossy=True) == expected
        with pytest.raises(ConfigError):
            read({"aInt32": "x"}, lossy=True)


def test_trace_config_is_written_and_read() -> None:
    config = TraceConfig(duration_ms=500, buffers=[TraceConfig.BufferConfig(size_kb=64)])
    assert format_json(config) == '{"buffers": [{"sizeKb": 64}], "durationMs": 500}'
    assert parse_json(format_json(config), TraceConfig) == config
