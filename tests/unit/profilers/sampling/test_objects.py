"""Reads strings and code objects: those of this process."""

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


def test_code_has_its_names(reader: ObjectReader) -> None:
    code = test_code_has_its_names.__code__
    name = reader.code_name(id(code))
    assert name.function == code.co_qualname
    assert name.filename == code.co_filename
    assert name.first_line == code.co_firstlineno


def test_code_without_memory_has_a_question_mark(reader: ObjectReader) -> None:
    assert reader.code_name(4096).function == "?"


def test_other_object_is_no_text(reader: ObjectReader) -> None:
    zeros = bytes(100)
    with pytest.raises(ValueError, match="no string"):
        reader.text(id(zeros))
