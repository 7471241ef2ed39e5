from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protozero import wire
from stretto.protozero.message import MAX_DEPTH
from stretto.protozero.text_format import TextFormatError, format_text, parse_text
from tests.support.generated import load, module_of

SAMPLES = Path(__file__).parent
sample: Any = load(module_of(SAMPLES / "sample.proto", "stretto_sample_text")[1])
Everything: Any = sample.Everything
Inner: Any = sample.Everything.Inner


def read(text: str) -> Any:
    return parse_text(text, Everything, "file")


def errors(text: str, *, lossy: bool = False) -> list[str]:
    """Return the errors of a text as `row:column message | marked text`."""
    with pytest.raises(TextFormatError) as caught:
        parse_text(text, Everything, "file", allow_unknown_fields=lossy)
    lines = str(caught.value).splitlines()
    found = []
    for head, line, guide in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        assert head.startswith("file:")
        start = guide.index("^")
        assert guide == " " * start + "^" + "~" * (len(guide) - start - 1)
        place, complaint = head.removeprefix("file:").split(" error: ")
        assert place.split(":")[1] == str(start + 1)
        assert line == text.split("\n")[int(place.split(":")[0]) - 1]
        found.append(f"{place} {complaint} | {line[start : len(guide)]}")
    return found


class TestReadingText:
    def test_example_config_is_read(self) -> None:
        text = """
# A comment.
buffers {          # one here
  size_kb: 8960
  fill_policy: RING_BUFFER
};
buffers: { size_kb: 64 }
data_sources {
  config {
    name: "linux.ftrace"; target_buffer: 1;
    ftrace_config { ftrace_events: "sched_switch" ftrace_events: "a/b" }
  }
}
write_into_file: true   duration_ms 500
"""
        expected = TraceConfig(
            buffers=[
                TraceConfig.BufferConfig(size_kb=8960, fill_policy=1),
                TraceConfig.BufferConfig(size_kb=64),
            ],
            data_sources=[TraceConfig.DataSource(config=DataSourceConfig(name="linux.ftrace"))],
            write_into_file=True,
            duration_ms=500,
        )
        config = expected.data_sources[0].config
        assert config is not None
        config.target_buffer = 1
        read_config = parse_text(text, TraceConfig)
        ftrace = read_config.data_sources[0].config
        assert ftrace is not None
        assert ftrace.ftrace_config is not None
        assert ftrace.ftrace_config.ftrace_events == ["sched_switch", "a/b"]
        ftrace.ftrace_config = None
        assert read_config == expected

    @pytest.mark.parametrize("end", ["", " ", "\n", ";", "#", "# c\n", "\t;  "])
    @pytest.mark.parametrize("value", ["a_int32: 5", "a_bool: true", 'a_string: "x"', "inner {}"])
    def test_value_may_be_followed_by_spaces_semicolon_or_comment(
        self, value: str, end: str
    ) -> None:
        assert len(read(value + end).set_fields()) == 1

    @pytest.mark.parametrize("text", ["", " \n\t", "# only a comment", "# one\n# two\n"])
    def test_text_without_fields_is_an_empty_message(self, text: str) -> None:
        assert read(text) == Everything()

    @pytest.mark.parametrize(
        ("field", "text", "value"),
        [
            *(("a_int32", "-7", -7), ("a_int32", "2147483648", -(1 << 31)), ("a_int32", "007", 7)),
            *(("a_uint32", "-1", (1 << 32) - 1), ("a_uint32", "4294967296", 0)),
            *(("a_int64", "-9223372036854775808", -(1 << 63)), ("a_uint64", "-1", (1 << 64) - 1)),
            *(("a_uint64", "99999999999999999999999", (1 << 64) - 1), ("a_int32", "1.9", 1)),
            *(("a_sint32", "-1", -1), ("a_sint64", "-9", -9), ("a_fixed32", "-1", (1 << 32) - 1)),
            *(("a_fixed64", "1", 1), ("a_sfixed32", "4294967295", -1), ("a_sfixed64", "-1", -1)),
            *(("a_double", "-.5", -0.5), ("a_double", "3.", 3.0), ("a_float", "0.1", 0.1)),
            *(("a_double", "inf", math.inf), ("a_float", "-inf", -math.inf)),
            *(("a_bool", "true", True), ("a_bool", "false", False)),
            *(("color", "NEGATIVE", -1), ("shape", "SQUARE", 16), ("color", "ROT", 1)),
        ],
    )
    def test_values_of_all_types_are_read(self, field: str, text: str, value: Any) -> None:
        assert read(f"{field}: {text}") == Everything(**{field: value})

    def test_nan_is_read(self) -> None:
        assert math.isnan(read("a_double: nan").a_double)

    @pytest.mark.parametrize(
        ("literal", "value"),
        [
            (r'"a\\b\'\"\?\a\b\f\n\r\t\v"', "a\\b'\"?\a\b\f\n\r\t\v"),
            (r'"\101\377"', "A\udcff"),
            ('"one" "two"\n# c\n "three"', "onetwothree"),
            ('""', ""),
            ('"é # no comment }"', "é # no comment }"),
            ('"two\nlines"', "two\nlines"),
        ],
    )
    def test_string_literals_are_unescaped_and_joined(self, literal: str, value: str) -> None:
        assert read(f"a_string: {literal}").a_string == value
        data = value.encode("utf-8", "surrogateescape")
        assert read(f"a_bytes: {literal}").a_bytes == data

    def test_repeated_fields_are_appended(self) -> None:
        message = read("many: 1 inners { value: 1 } many: 2 inners { value: 2 }")
        assert message == Everything(many=[1, 2], inners=[Inner(value=1), Inner(value=2)])

    def test_adjacent_strings_are_one_element_of_a_repeated_field(self) -> None:
        assert read('strings: "a" "b" strings: "c"').strings == ["ab", "c"]

    def test_packed_fields_are_read(self) -> None:
        assert read("packed_sint64: 1 packed_sint64: -2").packed_sint64 == [1, -2]

    def test_maps_are_read(self) -> None:
        text = 'numbers { key: "a" value: 1 } numbers { value: 2 } messages { key: 3 }'
        text += " messages { key: 4 value { value: 5 } } colors { key: 1 value: RED }"
        message = read(text)
        assert message.numbers == {"a": 1, "": 2}
        assert message.messages == {3: Inner(), 4: Inner(value=5)}
        assert message.colors == {1: 1}

    def test_last_field_of_a_oneof_is_kept(self) -> None:
        assert read('chosen_text: "a" chosen_color: RED') == Everything(chosen_color=1)

    def test_text_contains_the_field_names_of_the_schema(self) -> None:
        assert read("from: 1 encode: true self: 2") == Everything(from_=1, encode_=True, self_=2)
        assert errors("from_: 1")[0].startswith('1:1 Everything has no field "from_"')


class TestTextErrors:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a_int32: 5 }", "1:12 this } closes nothing | }"),
            ("inner {\n  value: 1\n", "3:1 a message isn't closed: } is missing | "),
            ("a_int32", "1:8 the text ends within a field | "),
            ("a_int32: ", "1:10 the text ends within a field | "),
            ("a_int32: 0x10", "1:11 unexpected character 'x' | x"),
            ("a_double: 1e5", "1:12 unexpected character 'e' | e"),
            ("a_double: 1.5f", "1:14 unexpected character 'f' | f"),
            ("many: [1, 2]", "1:7 unexpected character '[' | ["),
            ("many: 1, many: 2", "1:8 unexpected character ',' | ,"),
            ("inner <value: 1>", "1:7 unexpected character '<' | <"),
            ("a_string: 'a'", "1:11 unexpected character \"'\" | '"),
            ('a_string: "a', "1:11 a string doesn't end | \""),
            (";", "1:1 unexpected character ';' | ;"),
            ("a_int32: 1;;", "1:12 unexpected character ';' | ;"),
            ("\n\n  $", "3:3 unexpected character '$' | $"),
            ("color: RED-GREEN", "1:11 unexpected character '-' | -"),
            ("[]: 1", "1:1 an extension's name is missing | []"),
            ("nothing { value: 1 }", '1:1 Everything has no field "nothing" | nothing'),
        ],
    )
    def test_syntax_error_ends_reading_and_shows_its_position(
        self, text: str, expected: str
    ) -> None:
        assert errors(text) == [expected]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a_bool: maybe", "1:9 Everything.a_bool is true or false, not 'maybe' | maybe"),
            ("a_bool: 1", "1:9 Everything.a_bool wants a value of type bool, not '1' | 1"),
            (
                'a_bool: "true"',
                "1:10 Everything.a_bool wants a value of type bool, not 'true' | true",
            ),
            (
                "a_int32: five",
                "1:10 Everything.a_int32 wants a value of type int32, not 'five' | five",
            ),
            ("a_int32: -", "1:10 Everything.a_int32: '-' is no int32 | -"),
            ("a_double: 1.2.3", "1:11 Everything.a_double: '1.2.3' is no double | 1.2.3"),
            ('a_int32: ""', "1:11 Everything.a_int32 wants a value of type int32, not '' | \""),
            ("a_string: 5", "1:11 Everything.a_string wants a value of type string, not '5' | 5"),
            ("inner: 5", "1:8 Everything.inner wants a value of type message, not '5' | 5"),
            ("numbers: 5", "1:10 Everything.numbers wants a value of type map, not '5' | 5"),
            ("color: 1", "1:8 Everything.color wants a value of type enum, not '1' | 1"),
            (
                "shape: RED",
                "1:8 Everything.shape has no value 'RED'; it has ROUND, SQUARE | RED",
            ),
            (
                "a_int32: 1 a_int32: 2",
                '1:12 "a_int32" is not repeated, and stands here twice | a_int32',
            ),
            (
                "inner { value: 1 }\ninner { value: 2 }",
                '2:1 "inner" is not repeated, and stands here twice | inner',
            ),
            (
                "a_int31: 1",
                "1:1 Everything has no field \"a_int31\"; did you mean 'a_int32'? | a_int31",
            ),
            ("[a.b]: 1", '1:1 Everything has no extension "[a.b]" | [a.b]'),
            (
                "inner { children { sibling { valu: 1 } } }",
                "1:30 Everything.Inner has no field \"valu\"; did you mean 'value'? | valu",
            ),
            (
                r'a_string: "a\9"',
                (
                    r"1:12 Everything.a_string: an escape by number has exactly three octal"
                    r" digits, as \012 | a\9"
                ),
            ),
            (
                r'a_string: "\400"',
                r"1:12 Everything.a_string: \400 is more than a byte, \377 at most | \400",
            ),
            (
                r'a_bytes: "\x41"',
                (
                    r"1:11 Everything.a_bytes: \x is no escape; there are"
                    r" \\ \' \" \? \a \b \f \n \r \t \v \NNN | \x41"
                ),
            ),
            ("numbers { kay: 1 }", '1:11 Everything.numbers has no field "kay" | kay'),
        ],
    )
    def test_invalid_value_is_reported_with_its_position(self, text: str, expected: str) -> None:
        assert errors(text) == [expected]

    def test_all_invalid_values_are_reported(self) -> None:
        found = errors("a_bool: 1\n  nothing: 2\ncolor: BLUE\ninner 5")
        assert [line.split(" ")[0] for line in found] == ["1:9", "2:3", "3:8", "4:7"]

    def test_message_where_a_value_is_expected_ends_reading(self) -> None:
        assert errors("a_int32 { value: 1 } nothing: 1") == [
            "1:9 Everything.a_int32 wants a value of type int32, not '{' | {"
        ]

    def test_error_marker_ends_at_the_end_of_the_line(self) -> None:
        assert errors('a_int32: "one\ntwo"')[0].endswith("| one")

    def test_nesting_depth_is_limited(self) -> None:
        deep = "inner { " + "children { " * (MAX_DEPTH - 1)
        read(deep + "} " * MAX_DEPTH)
        assert errors(deep + "children {" + "}" * (MAX_DEPTH + 1))[0].endswith(
            "deeper than 100 | {"
        )

    def test_error_without_a_file_name_starts_with_a_dash(self) -> None:
        with pytest.raises(TextFormatError, match=r"^-:1:1 error: "):
            parse_text("nothing: 1", Everything)


class TestUnknownFieldsInText:
    def lossy(self, text: str) -> Any:
        return parse_text(text, Everything, allow_unknown_fields=True)

    @pytest.mark.parametrize(
        "text",
        [
            "nothing: 1",
            'nothing: "x" "y"',
            "nothing: WORD;",
            "[a.b]: 5 [a.c] { x: 1 }",
            "nothing { inner { value: 'x' } a: B }".replace("'x'", '"x"'),
            "nothing {} ; nothing { nothing {} }",
            "color: BLUE",
            "inner { nothing: 1 nothing { a: 1 } }",
        ],
    )
    def test_unknown_fields_can_be_ignored(self, text: str) -> None:
        expected = Everything(a_int32=1, inner=Inner() if text.startswith("inner") else None)
        assert self.lossy(text + " a_int32: 1") == expected

    def test_known_fields_are_checked_even_if_unknown_fields_are_ignored(self) -> None:
        assert len(errors("nothing: 1 a_bool: 1", lossy=True)) == 1
        assert len(errors("nothing { a: 1 ", lossy=True)) == 1
        assert len(errors("a_int32 { }", lossy=True)) == 1


class TestWritingText:
    def test_message_is_written_as_text(self) -> None:
        message = Everything(
            a_int32=-5,
            a_string='é"\n\x01\udcff',
            a_bytes=b"\xc3\xa9\0'",
            color=-1,
            inner=Inner(value=1),
            many=[1, 2],
            numbers={"a": 1},
            a_bool=True,
            from_=3,
        )
        assert format_text(message) == (
            "a_int32: -5\n"
            "a_bool: true\n"
            'a_string: "é\\"\\n\\001\\377"\n'
            'a_bytes: "\\303\\251\\000\'"\n'
            "color: NEGATIVE\n"
            "inner {\n  value: 1\n}\n"
            "many: 1\nmany: 2\n"
            'numbers {\n  key: "a"\n  value: 1\n}\n'
            "from: 3\n"
        )
        assert read(format_text(message)) == message
        assert format_text(Everything()) == ""

    def test_text_can_be_indented(self) -> None:
        assert format_text(Everything(inner=Inner()), 2) == "  inner {\n  }\n"

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            *((1.0, "1"), (0.1, "0.1"), (1e22, "1" + "0" * 22), (-2.5e-7, "-0.00000025")),
            *((math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan"), (-0.0, "-0")),
        ],
    )
    def test_doubles_are_written_without_exponents(self, value: float, shown: str) -> None:
        text = format_text(Everything(a_double=value))
        assert float(text.removeprefix("a_double: ")) == value or math.isnan(value)
        assert text.strip().removeprefix("a_double: ").removesuffix(".0") == shown
        assert str(read(text).a_double) == str(value)

    def test_floats_are_written_with_the_necessary_digits(self) -> None:
        assert format_text(Everything(a_float=0.1)) == "a_float: 0.1\n"
        largest = float.fromhex("0x1.fffffep127")
        assert read(format_text(Everything(a_float=largest))).a_float == largest

    def test_unknown_fields_and_values_are_written_as_comments(self) -> None:
        unknown = wire.varint_field(500, 7) + wire.bytes_field(501, b"x\n")
        message = Everything.decode(wire.varint_field(20, 99) + unknown)
        assert format_text(message) == '# color: 99\n# 500: 7\n# 501: "x\\n"\n'
        assert read(format_text(message)) == Everything()
