"""The generator of filter bytecode, with the cases of Perfetto's own tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stretto.base.errors import ConfigError
from stretto.protozero.filter.bytecode import V1, V2, V54
from stretto.protozero.filter.generator import FilterBytecodeGenerator
from tests.support.filter_words import decode_words

SIMPLE, RANGE, NESTED, STRING, TYPED = 1, 2, 3, 4, 5


def words(generator: FilterBytecodeGenerator) -> list[int]:
    code, overlay = generator.serialize()
    assert overlay == b""
    return decode_words(code)


def test_each_simple_field_is_one_word_of_bytecode() -> None:
    generator = FilterBytecodeGenerator()
    generator.add_simple_field(1)
    generator.add_simple_field(3)
    generator.add_simple_field(1000)
    generator.end_message()
    assert words(generator) == [1 << 3 | SIMPLE, 3 << 3 | SIMPLE, 1000 << 3 | SIMPLE, 0]


def test_each_field_range_is_two_words_of_bytecode() -> None:
    generator = FilterBytecodeGenerator()
    generator.add_simple_field(1)
    generator.add_simple_field_range(2, 3)
    generator.add_simple_field(5)
    generator.end_message()
    assert words(generator) == [1 << 3 | SIMPLE, 2 << 3 | RANGE, 3, 5 << 3 | SIMPLE, 0]


def test_nested_fields_are_followed_by_their_message_index() -> None:
    generator = FilterBytecodeGenerator()
    generator.add_nested_field(1, 1)
    generator.end_message()
    generator.add_nested_field(2, 0)
    generator.end_message()
    assert words(generator) == [1 << 3 | NESTED, 1, 0, 2 << 3 | NESTED, 0, 0]


def test_bytecode_v2_has_semantic_types_in_the_overlay() -> None:
    generator = FilterBytecodeGenerator(V2)
    generator.add_simple_field(1)
    generator.end_message()
    generator.add_filter_string_field(1, semantic_type=7)
    generator.add_filter_string_field(2, semantic_type=8, allow_in_v2=True)
    generator.add_filter_string_field(3)
    generator.end_message()
    code, overlay = generator.serialize()
    assert decode_words(code) == [1 << 3 | SIMPLE, 0, 2 << 3 | STRING, 3 << 3 | STRING, 0]
    assert decode_words(overlay) == [1, 1 << 3 | TYPED, 7, 1, 2 << 3 | TYPED, 8]


def test_v54_bytecode_contains_semantic_types() -> None:
    generator = FilterBytecodeGenerator(V54)
    generator.add_filter_string_field(1, semantic_type=7)
    generator.add_filter_string_field(2)
    generator.end_message()
    assert words(generator) == [1 << 3 | TYPED, 7, 2 << 3 | STRING, 0]


def test_bytecode_v1_contains_string_fields_only_if_allowed() -> None:
    generator = FilterBytecodeGenerator(V1)
    generator.add_filter_string_field(1)
    generator.add_filter_string_field(2, allow_in_v1=True)
    generator.add_filter_string_field(3, semantic_type=1, allow_in_v1=True, allow_in_v2=True)
    generator.add_filter_string_field(4, semantic_type=1)
    generator.end_message()
    assert words(generator) == [2 << 3 | SIMPLE, 3 << 3 | SIMPLE, 0]


@pytest.mark.parametrize(
    ("add", "complaint"),
    [
        (lambda g: g.add_simple_field(5), "field 5 can't follow field 5"),
        (lambda g: g.add_nested_field(4, 0), "field 4 can't follow"),
        (lambda g: g.add_filter_string_field(4), "field 4 can't follow"),
        (lambda g: g.add_simple_field(1 << 29), "from 1 to 536870911"),
        (lambda g: g.add_simple_field_range((1 << 29) - 2, 3), "from 1 to 536870911"),
        (lambda g: g.add_simple_field_range(6, 0), "a range of 0 fields"),
        (lambda g: g.add_filter_string_field(6, semantic_type=1 << 16), "more than 16 bits"),
    ],
)
def test_invalid_fields_are_refused_and_not_added(
    add: Callable[[FilterBytecodeGenerator], None], complaint: str
) -> None:
    generator = FilterBytecodeGenerator()
    generator.add_simple_field(5)
    with pytest.raises(ConfigError, match=complaint):
        add(generator)
    generator.end_message()
    assert words(generator) == [5 << 3 | SIMPLE, 0]


def test_field_number_0_is_refused() -> None:
    with pytest.raises(ConfigError):
        FilterBytecodeGenerator().add_simple_field(0)


def test_field_that_the_previous_range_contains_is_refused() -> None:
    generator = FilterBytecodeGenerator()
    generator.add_simple_field_range(1, 3)
    with pytest.raises(ConfigError):
        generator.add_simple_field(3)
    generator.add_simple_field(4)


def test_serialize_of_an_incomplete_filter_is_an_error() -> None:
    generator = FilterBytecodeGenerator()
    with pytest.raises(ConfigError, match="has no end"):
        generator.serialize()
    generator.add_nested_field(1, 1)
    generator.end_message()
    with pytest.raises(ConfigError, match="refers to message 1"):
        generator.serialize()
    generator.add_simple_field(1)
    with pytest.raises(ConfigError, match="has no end"):
        generator.serialize()


def test_unknown_bytecode_version_is_refused() -> None:
    with pytest.raises(ConfigError, match="version 3"):
        FilterBytecodeGenerator(3)
