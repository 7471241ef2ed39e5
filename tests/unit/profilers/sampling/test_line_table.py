"""The line of each instruction is that which CPython itself finds."""

from __future__ import annotations

import asyncio.base_events
import types
from collections.abc import Iterator

from stretto.profilers.sampling.line_table import line_at


def code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def test_lines_are_those_of_the_interpreter() -> None:
    path = asyncio.base_events.__file__
    with open(path, encoding="utf-8") as file:
        module = compile(file.read(), path, "exec")
    checked = 0
    for code in code_objects(module):
        for begin, end, line in code.co_lines():
            for offset in range(begin, end, 2):
                assert line_at(code.co_linetable, code.co_firstlineno, offset) == (line or 0)
                checked += 1
    assert checked > 10_000


def test_damaged_table_gives_a_line_or_none() -> None:
    for table in (b"", b"\xff" * 3, b"\x80", b"\xe8\xff\xff\xff\xff\xff\xff\xff"):
        assert isinstance(line_at(table, 1, 50), int)
