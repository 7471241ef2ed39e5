"""Chains of awaited coroutines, and the times of their calls as far as these are unknown."""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any
from weakref import ref

import pytest

from stretto.profilers.coroutine_calls import Call, chain, ends_of, settle_begins


@types.coroutine
def waits() -> Generator[None, None, None]:
    yield


async def rows() -> AsyncIterator[int]:
    await waits()
    yield 1
    try:
        yield 2
    finally:
        await waits()


async def iterates() -> None:
    async for _ in rows():
        pass


async def takes_default() -> None:
    await anext(rows(), None)


async def closes() -> None:
    generator = rows()
    await generator.asend(None)
    await generator.asend(None)
    await generator.aclose()


class Wrapped:
    def __await__(self) -> Generator[Any, Any, None]:
        return self.inner().__await__()

    async def inner(self) -> None:
        await waits()


async def awaits_wrapped() -> None:
    await Wrapped()


async def awaits_coroutine() -> None:
    await Wrapped().inner()


def suspended(make: Callable[[], Any], steps: int = 1) -> Any:
    coroutine = make()
    for _ in range(steps):
        coroutine.send(None)
    return coroutine


@pytest.mark.parametrize(
    ("make", "steps", "expected"),
    [
        (awaits_coroutine, 1, ["awaits_coroutine", "inner", "waits"]),
        (awaits_wrapped, 1, ["awaits_wrapped", "inner", "waits"]),
        (iterates, 1, ["iterates", "rows", "waits"]),
        (takes_default, 1, ["takes_default", "rows", "waits"]),
        (closes, 2, ["closes", "rows", "waits"]),
    ],
)
def test_chain_has_each_coroutine_and_generator_that_is_awaited(
    make: Callable[[], Any], steps: int, expected: list[str]
) -> None:
    coroutine = suspended(make, steps)
    assert [code.co_name for _, code, _ in chain(coroutine)] == expected
    coroutine.close()


def test_chain_ends_at_a_future() -> None:
    async def awaits() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> list[str]:
        task = asyncio.create_task(awaits())
        await asyncio.sleep(0)
        names = [code.co_name for _, code, _ in chain(task.get_coro())]
        task.cancel()
        return names

    assert asyncio.run(main()) == ["awaits"]


def calls_of(coroutine: Any, *begins: int) -> list[Call]:
    calls = [Call(each, code, code.co_name) for each, code, _ in chain(coroutine)]
    for call, begin in zip(calls, begins, strict=True):
        call.begin = begin
    return calls


def test_call_without_a_known_begin_begins_as_late_as_possible() -> None:
    coroutine = suspended(iterates)
    calls = calls_of(coroutine, 0, 600, 0)
    settle_begins(calls, 100, 1000)
    assert [(call.begin, call.unsure) for call in calls] == [(600, 500), (600, 0), (1000, 400)]
    coroutine.close()


def test_calls_without_a_known_end_end_as_early_as_possible() -> None:
    coroutine = suspended(iterates)
    calls = calls_of(coroutine, 0, 0, 0)[::-1]
    assert ends_of(calls, 100, 1000) == [(100, 900)] * 3
    coroutine.close()


def test_call_does_not_keep_its_coroutine_alive() -> None:
    coroutine = suspended(awaits_coroutine)
    calls = calls_of(coroutine, 0, 0, 0)
    assert calls[0].lasts(coroutine, 0, 0)
    ended = ref(coroutine)
    coroutine.close()
    del coroutine
    assert ended() is None
