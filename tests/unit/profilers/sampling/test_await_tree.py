"""The tasks of a process are read with their coroutines and with those that await them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stretto.profilers.sampling.await_tree import Task, read_tasks
from stretto.profilers.sampling.process import find_python
from tests.support.polling import wait_until
from tests.support.python_targets import HEAD, running

WAITING = """
import asyncio

async def query():
    await asyncio.sleep(1000)  # sleep: what is read

async def checkout():
    await query()

async def both():
    await asyncio.gather(checkout(), asyncio.create_task(checkout(), name="second"))

async def nested():
    await asyncio.gather(asyncio.gather(asyncio.create_task(query(), name="inside")))

async def group():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(query(), name="member")

async def shielded():
    await asyncio.shield(asyncio.create_task(query(), name="safe"))

async def waits():
    await asyncio.wait([asyncio.create_task(query(), name="one")])

async def limited():
    await asyncio.wait_for(asyncio.create_task(query(), name="short"), 1000)

async def rows():
    await query()
    yield 1

async def reads():
    async for row in rows():
        pass

async def main():
    done = asyncio.create_task(asyncio.sleep(0), name="done")
    first = asyncio.create_task(MAIN(), name="first")
    await done
    while len(asyncio.all_tasks()) < COUNT:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    print("ready", flush=True)
    await first

asyncio.run(main())
"""


@contextmanager
def waiting(function: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Run a program whose task `first` awaits a function; there are `count` tasks then."""
    with running(WAITING.replace("MAIN", function).replace("COUNT", str(count))) as program:
        wait_until(
            lambda: [task.runs for task in tasks_of(program.pid).values()] == [False] * count
        )
        yield program


needs_eager_tasks = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="CPython 3.11 has no eager tasks"
)


def own_calls(task: Task) -> list[str]:
    return [f.function for f in task.frames if "asyncio" not in f.filename]


def tasks_of(pid: int) -> dict[str, Task]:
    return {task.name: task for task in read_tasks(find_python(pid)) or ()}


def awaited_by(program: subprocess.Popen[str]) -> dict[str, list[str]]:
    """Return, for each task, the names of the tasks that await it."""
    tasks = tasks_of(program.pid)
    names = {task.address: task.name for task in tasks.values()}
    return {name: [names[each] for each in task.awaited_by] for name, task in tasks.items()}


def test_tree_of_a_gather() -> None:
    with waiting("both", 4) as program:
        tasks = tasks_of(program.pid)
        (unnamed,) = tasks.keys() - {"Task-1", "first", "second"}
        assert awaited_by(program) == {
            "Task-1": [],
            "first": ["Task-1"],
            "second": ["first"],
            unnamed: ["first"],
        }
    assert own_calls(tasks["Task-1"]) == ["main"]
    assert own_calls(tasks["first"]) == ["both"]
    assert own_calls(tasks["second"]) == ["checkout", "query"]
    query = tasks["second"].frames[1]
    assert "await asyncio.sleep" in (HEAD + WAITING).splitlines()[query.line - 1]
    assert not any(task.runs for task in tasks.values())


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("nested", "inside"),
        ("group", "member"),
        ("shielded", "safe"),
        ("waits", "one"),
        ("limited", "short"),
    ],
)
def test_task_is_below_the_one_that_awaits_it(function: str, name: str) -> None:
    with waiting(function, 3) as program:
        assert awaited_by(program)[name] == ["first"]


def test_frames_of_an_asynchronous_generator_are_read() -> None:
    with waiting("reads", 2) as program:
        assert own_calls(tasks_of(program.pid)["first"]) == ["reads", "rows", "query"]


def test_task_that_is_done_is_left_out() -> None:
    with waiting("reads", 2) as program:
        assert "done" not in tasks_of(program.pid)


def test_running_task_is_marked() -> None:
    source = WAITING.replace("    await first\n", "    time.sleep(1000)  # sleep: what is read\n")
    with running(source.replace("MAIN", "reads").replace("COUNT", "2")) as program:
        tasks = tasks_of(program.pid)
    assert [name for name, task in tasks.items() if task.runs] == ["Task-1"]


@needs_eager_tasks
def test_eager_task_is_found_while_its_first_step_runs() -> None:
    source = """
import asyncio

async def eager():
    print("ready", flush=True)
    time.sleep(1000)  # sleep: what is read

async def main():
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    asyncio.create_task(eager())

asyncio.run(main())
"""
    with running(source) as program:
        running_tasks = [own_calls(task) for task in tasks_of(program.pid).values() if task.runs]
    assert running_tasks == [["eager"]]


def test_process_without_asyncio_has_no_tasks() -> None:
    with running('print("ready", flush=True); time.sleep(1000)  # sleep: what is read') as program:
        assert not read_tasks(find_python(program.pid))
