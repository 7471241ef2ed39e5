"""Strings and code objects are read from the memory of a process: here of this one."""

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


def test_object_that_is_no_string_is_refused(reader: ObjectReader) -> None:
    zeros = bytes(100)
    with pytest.raises(ValueError, match="no string"):
        reader.text(id(zeros))
