"""Reads the tasks of asyncio in a running process: their coroutines, and which task awaits which.

Where the tasks are depends on the CPython version: `listed_tasks` reads them in 3.14 and later,
`module_tasks` in 3.11 to 3.13. Both give, for each task and future, what awaits it:

    task ─awaited by─> future of a gather ─awaited by─> task

A task that is awaited by a future is awaited by those that await the future. The process runs
meanwhile: what can't be read is left out, and all lists are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from stretto.profilers.sampling.coroutines import CoroutineReader
from stretto.profilers.sampling.listed_tasks import ListedTasks
from stretto.profilers.sampling.module_tasks import ModuleTasks
from stretto.profilers.sampling.objects import ObjectReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.profilers.sampling.process import PythonProcess
    from stretto.profilers.sampling.stacks import Frame

_MAX_TASKS = 10_000
_MAX_FUTURES = 1000
"""The most futures between a task and those that await it."""


class Task(NamedTuple):
    """A task of asyncio that isn't done."""

    address: int
    name: str
    runs: bool
    """Whether a thread executes it now."""
    frames: list[Frame]
    """Its coroutines, the outermost first; those of a task that runs are on its thread's stack."""
    awaited_by: list[int]
    """The addresses of the tasks that await it."""


class TaskSource(Protocol):
    """Finds the tasks of a process, in one CPython version."""

    def find(self) -> tuple[set[int], list[int]]:
        """Return the addresses of the tasks that run, and of all tasks.

        Raises:
            OSError: The process has ended.
        """

    def name(self, task: int, /) -> int:
        """Return the address of the object that is a task's name."""

    def coroutine(self, task: int, /) -> int:
        """Return the address of a task's coroutine."""

    def awaiters(self, future: int, /) -> Iterable[int]:
        """Yield the tasks and futures that await a task or future."""


def read_tasks(process: PythonProcess) -> list[Task] | None:
    """Return the tasks of a process; None without asyncio.

    Raises:
        OSError: The process has ended.
    """
    reader = ObjectReader(process.pid, process.layout)
    source: TaskSource | None = (
        ListedTasks.of(process, reader)
        if process.layout.version >= (3, 14)
        else ModuleTasks.of(process, reader)
    )
    return None if source is None else _Tree(reader, process, source).read()


class _Tree:
    def __init__(self, reader: ObjectReader, process: PythonProcess, source: TaskSource) -> None:
        self._reader, self._source = reader, source
        self._coroutines = CoroutineReader(reader, process.layout)

    def read(self) -> list[Task]:
        running, found = self._source.find()
        addresses = list(dict.fromkeys(found))[:_MAX_TASKS]
        known = set(addresses)
        tasks = (self._task(address, running, known) for address in addresses)
        return [task for task in tasks if task is not None]

    def _task(self, address: int, running: set[int], known: set[int]) -> Task | None:
        try:
            return Task(
                address,
                self._name(self._source.name(address)),
                address in running,
                list(self._coroutines.frames(self._source.coroutine(address))),
                sorted(self._awaiting_tasks(address, known)),
            )
        except (OSError, ValueError):
            return None  # It has ended meanwhile.

    def _name(self, address: int) -> str:
        """Return a task's name; asyncio makes the text of a default one only when it is asked."""
        try:
            return self._reader.text(address)
        except (OSError, ValueError):
            return f"Task-{self._reader.integer(address)}"

    def _awaiting_tasks(self, task: int, known: set[int]) -> set[int]:
        """Return the tasks that await a task, directly or through futures."""
        tasks: set[int] = set()
        futures = {task}
        ahead = [task]
        while ahead and len(futures) <= _MAX_FUTURES:
            for each in self._source.awaiters(ahead.pop()):
                if each in known:
                    tasks.add(each)
                elif each not in futures:
                    futures.add(each)
                    ahead.append(each)
        return tasks
