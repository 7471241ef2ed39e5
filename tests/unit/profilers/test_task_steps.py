"""Long steps of tasks, with auto detail and beside samples: native/hooks/task_steps.h."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import pytest

from stretto.profilers import asyncio_tasks, functions
from stretto.profilers.functions import FunctionOptions
from tests.support.call_slices import BEGIN, END, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_S = 0.001


@pytest.fixture(autouse=True, params=["auto_detail", "long_steps"])
def only_long_steps(request: pytest.FixtureRequest) -> Iterator[None]:
    asyncio_tasks.install()
    functions.configure(FunctionOptions(**{request.param: True}))
    yield
    functions.configure(FunctionOptions())


def burn() -> None:
    end = time.perf_counter() + LONG_S
    while time.perf_counter() < end:
        pass


async def works(steps: int = 1) -> None:
    for _ in range(steps):
        burn()
        await asyncio.sleep(0)
    burn()


async def fails() -> None:
    burn()
    raise LookupError


async def leaf() -> None:
    await works()


async def awaits() -> None:
    await asyncio.create_task(leaf(), name="leaf")
    burn()


def test_steps_of_a_task_are_slices_with_its_name_and_one_flow() -> None:
    async def main() -> None:
        await asyncio.create_task(works(2), name="mine")

    with recorded("python.asyncio") as result:
        asyncio.run(main())
    steps = [e for e in result.events if e.type == BEGIN and e.args.get("task") == "mine"]
    assert {(e.name, e.track) for e in steps} == {("works", 0)}
    assert len(steps) == 3
    assert len({tuple(e.flows) for e in steps}) == 1
    assert len(steps[0].flows) == 1


def test_step_ends_the_flow_of_the_task_that_it_awaited() -> None:
    with recorded("python.asyncio") as result:
        asyncio.run(awaits())
    (flow,) = {f for e in result.events if e.args.get("task") == "leaf" for f in e.flows}
    ends = [e.name for e in result.events if flow in e.terminating_flows]
    assert ends == ["awaits"]


async def yields(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
    burn()


def test_short_steps_have_no_slices() -> None:
    with recorded("python.asyncio") as result:
        asyncio.run(yields(2000))
    steps = [e for e in result.events if e.type == BEGIN and "task" in e.args]
    assert 1 <= len(steps) < 200  # A step in which the thread waits for a CPU is long.


def test_short_steps_have_slices_if_all_are_recorded() -> None:
    functions.configure(FunctionOptions())
    with recorded("python.asyncio") as result:
        asyncio.run(yields(2000))
    steps = [e for e in result.events if e.type == BEGIN and "task" in e.args]
    assert [e.name for e in steps].count("yields") == 2001


class Odd(asyncio.Future[int]):
    """An awaitable whose class can't be asked for."""

    asked = 0

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        type(self).asked += 1
        raise LookupError


@pytest.mark.parametrize("auto", [True, False])
def test_awaited_object_is_not_asked_for_its_class(auto: bool) -> None:
    async def main() -> int:
        odd = Odd()
        asyncio.get_running_loop().call_soon(odd.set_result, 3)
        burn()
        found = await odd
        burn()
        return found

    functions.configure(FunctionOptions(auto_detail=auto))
    asyncio.run(main())
    without, Odd.asked = Odd.asked, 0
    with recorded("python.asyncio") as result:
        assert asyncio.run(main()) == 3
    assert Odd.asked == without
    steps = [e for e in result.events if e.type == BEGIN and "task" in e.args]
    assert [e.name for e in steps].count(main.__qualname__) == 2


def test_last_step_of_a_failed_task_has_the_exception() -> None:
    with recorded("python.asyncio") as result, pytest.raises(LookupError):
        asyncio.run(fails())
    raised = [e.args for e in result.events if e.type == END and e.track == 0 and e.args]
    assert raised == [{"exception": "LookupError"}]


def test_callbacks_that_are_no_steps_have_no_slices() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(burn)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with recorded("python.asyncio") as result:
        asyncio.run(main())
    begun = [e for e in result.events if e.type == BEGIN and e.track == 0]
    assert [e.name for e in begun if "task" not in e.args] == []


@pytest.mark.skipif(sys.version_info < (3, 14), reason="asyncio's call graph is new in 3.14")
def test_step_names_the_tasks_that_wait_for_its_task() -> None:
    with recorded("python.asyncio") as result:
        asyncio.run(awaits())
    steps = [e for e in result.events if e.type == BEGIN and e.track == 0]
    (main_name,) = {e.args["task"] for e in steps if e.name == "awaits"}
    assert {e.args["awaited_by"] for e in steps if e.name == "leaf"} == {main_name}
