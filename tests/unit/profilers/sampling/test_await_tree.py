"""The tasks of a process are read with their coroutines and with those that await them."""

from __future__ import annotations

import sys

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

async def main():
    first = asyncio.create_task(both(), name="both")
    await asyncio.sleep(0)
    print("ready", flush=True)
    await first

asyncio.run(main())
"""

needs_the_table = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="CPython before 3.14 has no table of asyncio's offsets"
)


def own_calls(task: Task) -> list[str]:
    return [f.function for f in task.frames if "asyncio" not in f.filename]


def tasks_of(pid: int) -> dict[str, Task]:
    return {task.name: task for task in read_tasks(find_python(pid)) or ()}


@needs_the_table
def test_tree_of_a_gather() -> None:
    with running(WAITING) as program:
        wait_until(lambda: {"second", "Task-2"} <= tasks_of(program.pid).keys())
        wait_until(lambda: len(tasks_of(program.pid)["second"].frames) > 1)
        tasks = tasks_of(program.pid)
    names = {task.address: task.name for task in tasks.values()}
    awaited_by = {name: [names[each] for each in task.awaited_by] for name, task in tasks.items()}
    assert awaited_by == {"Task-1": [], "both": ["Task-1"], "second": ["both"], "Task-2": ["both"]}
    assert own_calls(tasks["Task-1"]) == ["main"]
    assert own_calls(tasks["both"]) == ["both"]
    assert own_calls(tasks["second"]) == ["checkout", "query"]
    query = tasks["second"].frames[1]
    assert "await asyncio.sleep" in (HEAD + WAITING).splitlines()[query.line - 1]
    assert not any(task.runs for task in tasks.values())


@needs_the_table
def test_running_task_is_marked() -> None:
    source = WAITING.replace("    await first\n", "    time.sleep(1000)  # sleep: what is read\n")
    with running(source) as program:
        tasks = tasks_of(program.pid)
    assert [name for name, task in tasks.items() if task.runs] == ["Task-1"]


def test_process_without_asyncio_has_no_tasks() -> None:
    with running('print("ready", flush=True); time.sleep(1000)  # sleep: what is read') as program:
        assert not read_tasks(find_python(program.pid))
