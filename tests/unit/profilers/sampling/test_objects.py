"""Objects are read from the memory of a process: here of this one."""

from __future__ import annotations

import os

import pytest

from stretto.profilers.sampling.objects import ObjectReader
from stretto.profilers.sampling.process import find_python


@pytest.fixture(scope="module")
def reader() -> ObjectReader:
    process = find_python(os.getpid())
    return ObjectReader(process.pid, process.layout)


@pytest.mark.parametrize(
    "text", ["", "plain", "umläut", "Ωmega €", "\N{GRINNING FACE} face", "x" * 4096]
)
def test_text_is_read_in_each_width(reader: ObjectReader, text: str) -> None:
    assert reader.text(id(text)) == text


def test_long_text_is_cut(reader: ObjectReader) -> None:
    text = "y" * 10_000
    assert reader.text(id(text)) == "y" * 4096


def test_names_of_code_are_read(reader: ObjectReader) -> None:
    code = test_names_of_code_are_read.__code__
    name = reader.code_name(id(code))
    assert name.function == code.co_qualname
    assert name.filename == code.co_filename


def test_name_of_unreadable_code_is_a_question_mark(reader: ObjectReader) -> None:
    assert reader.code_name(4096).function == "?"


def test_object_that_is_no_code_has_no_name(reader: ObjectReader) -> None:
    other = ("text",) * 40  # Wherever a code object has a text, this has one, too.
    assert reader.code_name(id(other)) == ("?", "?", 0)
    ones = b"\xff" * 1000
    assert reader.code_name(id(ones) + 64) == ("?", "?", 0)


def test_object_that_is_no_string_is_refused(reader: ObjectReader) -> None:
    zeros = bytes(100)
    with pytest.raises(ValueError, match="no string"):
        reader.text(id(zeros))


class Plain:
    def __init__(self) -> None:
        self.one, self.two = "uno", 1234567


def test_attributes_of_an_object_are_read(reader: ObjectReader) -> None:
    plain = Plain()
    found = reader.attributes(id(plain))
    assert reader.text(found["one"]) == "uno"
    assert reader.integer(found["two"]) == 1234567
    vars(plain)["three"] = "tre"  # The attributes become a dict of their own.
    del plain.one
    found = reader.attributes(id(plain))
    assert found.keys() == {"two", "three"}
    assert reader.text(found["three"]) == "tre"


def test_items_of_dicts_are_read(reader: ObjectReader) -> None:
    mixed: dict[object, str] = {number: str(number) for number in range(1000)}
    del mixed[7]
    assert reader.items(id(mixed)) == [(id(key), id(value)) for key, value in mixed.items()]
    names = {"a": "x", "b": "y"}
    assert reader.text(reader.item(id(names), "b")) == "y"
    with pytest.raises(ValueError, match="no c"):
        reader.item(id(names), "c")


@pytest.mark.parametrize("number", [0, -5, 1 << 40])
def test_other_numbers_than_small_positive_ones_are_refused(
    reader: ObjectReader, number: int
) -> None:
    with pytest.raises(ValueError, match="no small number"):
        reader.integer(id(number))


@pytest.mark.parametrize("thing", ["text", 5, ValueError(), b"\xff" * 100])
def test_object_without_attributes_is_refused(reader: ObjectReader, thing: object) -> None:
    with pytest.raises(ValueError, match="no object with attributes"):
        reader.attributes(id(thing))
