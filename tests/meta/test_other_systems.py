"""What reads traces on other systems uses the C standard's library only.

`make wheels` compiles these sources for Windows and macOS; this test needs no compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import ROOT, report, where

pytestmark = pytest.mark.once

NATIVE = ROOT / "native"
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
SOURCE = re.compile(r"native/[\w/]+\.c\b")
STANDARD = {
    f"{name}.h"
    for name in (
        "assert errno float inttypes limits math setjmp stdarg stdatomic stdbool stddef stdint"
        " stdio stdlib string"
    ).split()
}
ALLOWED = {
    ("analysis/memory.c", "malloc.h"): "for glibc only, under `#ifdef`",
    ("bind/common/python.h", "Python.h"): "its limited API",
}


def sources() -> list[Path]:
    """Return the sources of the extension `_importer`, as CMake has them."""
    core = re.search(r"set\(core_sources [^)]*\)", (ROOT / "CMakeLists.txt").read_text())
    assert core is not None
    listed = core[0] + (NATIVE / "importer.cmake").read_text()
    return [ROOT / path for path in SOURCE.findall(listed)] + [*(NATIVE / "analysis").glob("*.c")]


def includes(path: Path) -> Iterator[tuple[int, Path | None, str]]:
    """Return the line, the file if it is ours, and the name of each header that a file includes."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            own, other = match.groups()
            found = [folder / own for folder in (path.parent, NATIVE)] if own else []
            yield number, next((file for file in found if file.exists()), None), own or other


def test_sources_of_the_importer_include_only_headers_of_the_c_standard() -> None:
    waiting, seen, violations = sources(), set[Path](), list[str]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for number, own, name in includes(path):
            allowed = name in STANDARD or (str(path.relative_to(NATIVE)), name) in ALLOWED
            if own:
                waiting.append(own)
            elif not allowed:
                violations.append(where(path, number, f"<{name}> is not in the C standard"))
    assert NATIVE / "core" / "wire.h" in seen
    report(violations)
