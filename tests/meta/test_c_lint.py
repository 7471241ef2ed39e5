"""Rules of the C sources that compilers don't check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import ROOT, is_generated, native_sources, report, where

pytestmark = pytest.mark.once

MAX_LINES = 600
# Private names of CPython's C API, such as `_PyFrame_…`. Only native/hooks may use them,
# because only that folder is adapted to each new CPython.
PRIVATE_API = re.compile(r"\b_Py\w+")
PYTHON_HEADER = re.compile(r'#\s*include\s*[<"](Python|structmember|frameobject|internal/).*[>"]')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def code_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return (number, line) for each line of a file, with the comments removed."""
    text = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), path.read_text())
    return enumerate(text.splitlines(), 1)


def find(pattern: re.Pattern[str], paths: list[Path], complaint: str) -> list[str]:
    return [
        where(path, number, f"{complaint}: {match[0]}")
        for path in paths
        for number, line in code_lines(path)
        if (match := pattern.search(line))
    ]


def test_core_does_not_include_python_headers() -> None:
    folders = ("core", "analysis", "probes", "preload", "test")
    paths = [path for folder in folders for path in native_sources(folder)]
    report(find(PYTHON_HEADER, paths, f"no Python in {folders}"))


def test_private_python_api_is_used_only_in_hooks() -> None:
    """The exception is needed by a recording without functions, which loads no hooks."""
    native = ROOT / "native"
    exception = native / "bind" / "common" / "exempt.c"
    paths = [p for p in native_sources() if not p.is_relative_to(native / "hooks")]
    assert exception in paths
    paths.remove(exception)
    report(find(PRIVATE_API, paths, "private API outside native/hooks"))


def test_lint_patterns_match_only_python_headers_and_private_names() -> None:
    assert PYTHON_HEADER.search("#include <Python.h>")
    assert PYTHON_HEADER.search('# include "internal/pycore_frame.h"')
    assert PRIVATE_API.search("x = _PyThreadState_GET();")
    assert not PRIVATE_API.search("PyThreadState_Get(); my_Py_thing();")


def test_c_files_above_600_lines_state_a_reason() -> None:
    too_long = []
    for path in native_sources():
        lines = path.read_text().splitlines()
        reasoned = any("lines" in line for line in lines[:10])
        if len(lines) > MAX_LINES and not is_generated(path) and not reasoned:
            too_long.append(where(path, 1, f"{len(lines)} lines, and no reason at its head"))
    report(too_long)


def test_every_unit_of_the_core_has_a_header_and_a_test() -> None:
    """Several source files, such as `trace_buffer.c` and `trace_buffer_read.c`, may be one unit."""
    headers = {path.stem for path in native_sources("core") if path.suffix == ".h"}
    tests = {path.stem.removeprefix("test_") for path in native_sources("test")}
    violations = []
    for path in native_sources("core"):
        if path.suffix == ".c":
            unit = max((h for h in headers if _is_part_of(path.stem, h)), key=len, default=None)
            if unit is None:
                violations.append(where(path, 1, "no header of its name"))
            elif not any(_is_part_of(test, unit) for test in tests):
                violations.append(where(path, 1, f"no native/test/test_{unit}.c"))
    report(violations)


def _is_part_of(stem: str, unit: str) -> bool:
    return stem == unit or stem.startswith(unit + "_")


def test_c_headers_have_pragma_once() -> None:
    report(
        [
            where(path, 1, "no #pragma once")
            for path in native_sources("core") + native_sources("bind") + native_sources("hooks")
            if path.suffix == ".h" and not is_generated(path)
            if "\n#pragma once\n" not in path.read_text()
        ]
    )


def test_public_core_functions_have_the_prefix_st() -> None:
    """Public functions need the prefix `st_`, because they share a namespace with CPython."""
    declared = re.compile(r"^(?!static|typedef|extern)[\w*]+(?: [\w*]+)* \**(\w+)\(")
    violations = []
    for path in native_sources("core"):
        if path.suffix == ".h":
            for number, line in code_lines(path):
                match = declared.match(line)
                if match and not match[1].lower().startswith("st_"):
                    violations.append(where(path, number, f"{match[1]} lacks the prefix st_"))
    report(violations)
