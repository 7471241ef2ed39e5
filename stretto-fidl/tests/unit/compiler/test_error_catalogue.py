"""One wrong definition for each error that both Fuchsia's compiler and this compiler detect.

The numbers are those of Fuchsia's error catalogue, `fi-NNNN`; the definitions are written for
this test. A table in docs/compiler.md lists the numbers that are missing here, and says why.
"""

from __future__ import annotations

import re

import pytest

from fidl_support.documentation import DOCS
from fidl_support.mistakes import AGED, CASES, FDF, OTHER
from fidl_support.source import error_of
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import CompileError

RETIRED = {
    *"5 21 47 76 78 79 85 86 87 89 90 95 96 98 99 100 105 106 108 109 119 134 136 137 138".split(),
    *"139 140 143 144 170 174 176 182 183 190 194 195 196 200 202 220".split(),
}
"""Numbers of errors that the catalogue has retired."""

WITHOUT_PLACE = {"40", "41"}
"""Errors of files, not of definitions: they have no place."""

DOCUMENT = DOCS / "compiler.md"


@pytest.mark.parametrize("number", CASES)
def test_each_wrong_definition_raises_one_error_with_its_place(number: str) -> None:
    error = error_of(CASES[number], other=OTHER, aged=AGED, fdf=FDF)
    assert error.line > 0
    assert error.column > 0
    assert len(error.errors) == 1


def test_files_of_two_libraries_in_one_list_are_refused() -> None:
    with pytest.raises(CompileError, match="must be of one library"):
        compile_sources({"a": "library a;", "b": "library b;"})
    with pytest.raises(CompileError, match="among the dependencies"):
        compile_sources({"a": "library a;"}, dependencies={"b": "library a;"})


def test_document_lists_the_error_numbers_that_the_compiler_does_not_detect() -> None:
    """Each error number up to 223 is retired, has a definition here, or is in the page's table."""
    rows = re.findall(r"^\| ([0-9, ]+) \|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    told = {number for row in rows for number in row.split(", ")}
    found = CASES.keys() | WITHOUT_PLACE
    assert not told & found
    assert told | found == {str(number) for number in range(1, 224)} - RETIRED
