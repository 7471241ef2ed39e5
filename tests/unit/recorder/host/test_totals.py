"""Totals of auto detail: the recorder reads the memory of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from stretto.recorder.host import totals
from stretto.recorder.host.totals import FunctionTotals, SharedTotals, read

GONE = 1 << 30
"""Above the largest pid."""


def memory(
    pid: int, *functions: tuple[int, ...], count: int | None = None, text: bytes = b""
) -> int:
    """Return a descriptor of memory as a process writes it."""
    fd = os.memfd_create("totals")
    counted = len(functions) if count is None else count
    table = b"".join(totals._FUNCTION.pack(*each) for each in functions)
    os.pwrite(
        fd, totals._NUMBERS.pack(pid, counted, 1, 2, 3, 4, 5, 6, 7, 1, 0, 8, 9, 10) + table, 0
    )
    os.pwrite(fd, text, totals._TEXT_AT)
    return fd


@pytest.fixture
def shared() -> Iterator[SharedTotals]:
    shared = SharedTotals()
    yield shared
    shared.finish()


def test_totals_of_a_process_are_read_from_its_memory() -> None:
    functions = ((3, 0, 10, 20, 5, 7, 0), (9, 1, 1, 1, 1, 8, 21), (1, 0, 0, 0, 0, 1, 0))
    fd = memory(7, *functions, text=b"shop.quote\0/app/s.py\0odd\tname\n\0x\xff.py\0")
    found = read(fd)
    os.close(fd)
    assert found is not None
    assert found.pid == 7
    assert [*found.numbers.values()] == [1, 2, 3, 4, 5, 6, 7, 1, 0, 8, 9, 10]
    expected = [
        FunctionTotals("shop.quote", "/app/s.py", 7, 3, 10, 20, 5),
        FunctionTotals("odd name", "x\N{REPLACEMENT CHARACTER}.py", 8, None, 1, 1, 1),
    ]
    assert [vars(each) for each in found.functions] == [vars(each) for each in expected]


def test_memory_that_a_process_has_damaged_is_read_without_an_error() -> None:
    for fd in (
        os.memfd_create("empty"),
        memory(0),
        memory(7, count=1 << 60),
        memory(7, (1, 0, 1, 1, 1, 1, 1 << 63)),
    ):
        found = read(fd)
        os.close(fd)
        assert found is None or all(each.name == "" for each in found.functions)


def test_descriptor_that_is_no_memory_is_closed(shared: SharedTotals) -> None:
    read_end, write_end = os.pipe()
    shared.add(read_end)
    with pytest.raises(BrokenPipeError):
        os.write(write_end, b"x")
    os.close(write_end)
    assert shared.finish() == []


def test_memories_of_ended_processes_are_closed_before_the_end(shared: SharedTotals) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(2 * totals.MAX_MEMORIES):
        shared.add(memory(os.getpid() if number == 5 else GONE))
    assert len(os.listdir("/proc/self/fd")) < before + totals.MAX_MEMORIES
    assert len(shared.finish()) == 2 * totals.MAX_MEMORIES
