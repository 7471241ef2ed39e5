"""Programs without Stretto that call, raise, yield and await in many ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st


def leaf() -> int:
    return 1


def recursive(depth: int) -> int:
    return recursive(depth - 1) + leaf() if depth else 0


def raiser() -> None:
    raise ValueError


def passes_on() -> None:
    leaf()
    raiser()


def catches() -> None:
    for _ in range(2):
        try:
            passes_on()
        except ValueError:
            leaf()


def counter(limit: int) -> Generator[int, object, str]:
    for i in range(limit):
        leaf()
        yield i
    return "done"


def consumes() -> None:
    for _ in counter(3):
        leaf()


def delegates() -> Generator[int, object, str]:
    return (yield from counter(2))


def consumes_delegated() -> None:
    assert list(delegates()) == [0, 1]


def closes() -> None:
    generator = counter(5)
    next(generator)
    generator.close()
    never_started = counter(5)
    never_started.close()


def stubborn() -> Generator[int, object, None]:
    while True:
        try:
            yield leaf()
        except KeyError:
            leaf()


def throws() -> None:
    generator = stubborn()
    next(generator)
    generator.throw(KeyError("kept"))
    with pytest.raises(ValueError, match="lost"):
        generator.throw(ValueError("lost"))


def throws_through_delegation() -> None:
    def outer() -> Generator[int, object, None]:
        yield from stubborn()

    generator = outer()
    next(generator)
    generator.throw(KeyError("kept"))
    generator.close()


def comprehensions() -> None:
    assert [leaf() for _ in range(2)] == [1, 1]
    assert sum(leaf() for _ in range(2)) == 2
    assert sorted([2, 1], key=lambda _: leaf()) == [2, 1]


def defines_a_class() -> None:
    class Inner:
        value = leaf()

        def __init__(self) -> None:
            leaf()

        @property
        def prop(self) -> int:
            return leaf()

        def __enter__(self) -> None:
            leaf()

        def __exit__(self, *exception: object) -> bool:
            return True

    with Inner():
        raiser()
    assert Inner().prop


async def awaited(n: int) -> int:
    await asyncio.sleep(0)
    return n + leaf()


async def failing() -> None:
    await asyncio.sleep(0)
    raiser()


async def ticks() -> AsyncIterator[int]:
    for i in range(2):
        await asyncio.sleep(0)
        yield i


async def main() -> None:
    assert await asyncio.gather(awaited(1), awaited(2)) == [2, 3]
    with pytest.raises(ValueError):  # noqa: PT011
        await failing()
    assert [i async for i in ticks()] == [0, 1]
    async for _ in ticks():
        break


def runs_asyncio() -> None:
    asyncio.run(main())


PROGRAMS = [
    leaf,
    lambda: recursive(5),
    lambda: recursive(200),
    catches,
    consumes,
    consumes_delegated,
    closes,
    throws,
    throws_through_delegation,
    comprehensions,
    defines_a_class,
    runs_asyncio,
]


class Stop(Exception):  # noqa: N818
    pass


def run(steps: list[Any]) -> None:
    """Run a program given as a list of steps; each step calls, iterates, raises or catches."""
    for step in steps:
        _KINDS[step[0]](step[1])


def step_call(inner: list[Any]) -> None:
    run(inner)


def step_raise(_inner: list[Any]) -> None:
    raise Stop


def step_catch(inner: list[Any]) -> None:
    try:
        run(inner)
    except Stop:
        leaf()


def produce(inner: list[Any]) -> Iterator[int]:
    for number, step in enumerate(inner):
        run([step])
        yield number


def step_iterate(inner: list[Any]) -> None:
    for _ in produce(inner):
        leaf()


def step_abandon(inner: list[Any]) -> None:
    generator = produce(inner)
    next(generator, None)
    del generator


_KINDS: dict[str, Callable[[list[Any]], None]] = {
    "call": step_call,
    "raise": step_raise,
    "catch": step_catch,
    "iterate": step_iterate,
    "abandon": step_abandon,
}
random_steps = st.recursive(
    st.just([]),
    lambda inner: st.lists(st.tuples(st.sampled_from(sorted(_KINDS)), inner), max_size=4),
    max_leaves=12,
)
