"""Estimates of heap profiles agree with tracemalloc, which knows each allocation."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stretto import _pyhooks

pytestmark = [pytest.mark.thorough, pytest.mark.once]

SEEDS = 30
TOP = 10
INTERVAL = 4096
DEPTH = 25
"""More than the calls below `work`."""

Lines = tuple[int, ...]
"""The lines of this file in a stack, the outermost first."""


class Node:
    def __init__(self, number: int) -> None:
        self.near = [number, number + 1]
        self.label = str(number) * 5


def make_nodes(count: int) -> list[object]:
    return [Node(i) for i in range(count)]


def index(count: int) -> dict[str, tuple[int, float]]:
    return {str(i): (i, float(i)) for i in range(count)}


def texts(count: int, size: int) -> list[str]:
    return [str(i) * size for i in range(count)]


def nest(depth: int) -> object:
    return nest(depth - 1) if depth else [bytes(300) for _ in range(3000)]


def churn() -> None:
    for _ in range(20):
        texts(500, 50)


def work() -> list[object]:
    """Return objects of some ten megabytes, from different stacks; much more is freed."""
    kept: list[object] = [make_nodes(8000)]
    kept.append(index(12_000))
    churn()
    kept.append(texts(4000, 20))
    kept.append(texts(1000, 200))
    kept.append([bytearray(10_000) for _ in range(60)])
    kept.append(nest(12))
    kept.append(nest(3))
    churn()
    kept.append([{"number": i} for i in range(5000)])
    return kept


@contextmanager
def traced() -> Iterator[Callable[[], Counter[Lines]]]:
    """Yield a function that returns the bytes held of each stack, by tracemalloc."""

    def held() -> Counter[Lines]:
        found: Counter[Lines] = Counter()
        for group in tracemalloc.take_snapshot().statistics("traceback"):
            frames = [frame for frame in group.traceback if frame.filename == __file__]
            found[tuple(frame.lineno for frame in frames)] += group.size
        return found

    tracemalloc.start(DEPTH)
    try:
        yield held
    finally:
        tracemalloc.stop()


@contextmanager
def sampled(seed: int) -> Iterator[Callable[[], Counter[Lines]]]:
    """Yield a function that returns the estimated bytes held of each stack."""

    def lines(stack: int) -> Lines:
        frames = (_pyhooks.heap_frame(frame) for frame in _pyhooks.heap_stack(stack))
        return tuple(
            line for function, line in frames if _pyhooks.heap_function(function)[1] == __file__
        )

    def held() -> Counter[Lines]:
        found: Counter[Lines] = Counter()
        dumps = [_pyhooks.heap_dump(heap, True)[2] for heap in range(3)]
        for stack, allocated, freed, *_ in (row for rows in dumps for row in rows):
            found[lines(stack)] += allocated - freed
        return found

    _pyhooks.heap_start(INTERVAL, seed=seed)
    try:
        yield held
    finally:
        _pyhooks.heap_stop()


@pytest.fixture
def no_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def run(held: Callable[[], Counter[Lines]]) -> Counter[Lines]:
    """Do the work; return the bytes held of each stack, from a line of `work` on."""
    gc.collect()  # Frees what CPython keeps for reuse: it wouldn't be allocated.
    kept = work()
    found = held()
    assert len(kept) == 8
    lines = [line for *_, line in work.__code__.co_lines() if line is not None]
    sums: Counter[Lines] = Counter()
    for stack, size in found.items():
        at = [i for i, line in enumerate(stack) if min(lines) <= line <= max(lines)]
        if at:
            sums[stack[at[0] :]] += size
    return sums


@pytest.mark.usefixtures("no_collections")
def test_top_stacks_are_within_three_deviations_of_tracemalloc() -> None:
    work()  # What is cached at the first time isn't allocated later.
    with traced() as held:
        exact = run(held)
    runs = []
    for seed in range(SEEDS):
        with sampled(seed * 1000) as held:
            runs.append(run(held))
    top = exact.most_common(TOP)
    assert len(top) == TOP
    assert top[-1][1] > 100 * INTERVAL
    outside = 0
    for stack, size in top:
        deviation = (size * INTERVAL) ** 0.5
        mean = sum(found[stack] for found in runs) / SEEDS
        assert abs(mean - size) < 3 * deviation / SEEDS**0.5, (stack, size, mean)
        outside += sum(abs(found[stack] - size) > 3 * deviation for found in runs)
    # Of 300 estimates of a normal distribution, 0.8 are farther away.
    assert outside <= 4
