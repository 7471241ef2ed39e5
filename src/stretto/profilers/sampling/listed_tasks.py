"""Finds the tasks of asyncio in CPython 3.14 and later, which lists them for debuggers.

A table of the offsets is in the section `.AsyncioDebug`, of the extension `_asyncio` or of the
interpreter's file:

    interpreter, thread ─> list of tasks ─> task ─> name
                                                 ─> awaited_by: a task, a future, or a set of them
                                                 ─> coroutine
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stretto.profilers.sampling.process import section_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.profilers.sampling.objects import ObjectReader
    from stretto.profilers.sampling.process import PythonProcess

_SECTION = ".AsyncioDebug"
_NAMES = (
    "task_size", "task_name", "task_awaited_by", "is_task", "awaited_by_is_set", "task_coro",
    "task_node", "interpreter_size", "interpreter_tasks", "thread_size", "running_loop",
    "running_task", "thread_tasks",
)  # fmt: skip
"""The offsets in the section, in their order (Modules/_asynciomodule.c)."""

_MAX_TASKS = 10_000


class ListedTasks:
    """The tasks of one process, by the offsets of its `_asyncio`."""

    def __init__(
        self, process: PythonProcess, reader: ObjectReader, offsets: dict[str, int]
    ) -> None:
        self._process, self._reader, self._offsets = process, reader, offsets
        self._layout = process.layout

    @classmethod
    def of(cls, process: PythonProcess, reader: ObjectReader) -> ListedTasks | None:
        """Return the tasks of a process; None without asyncio.

        Raises:
            OSError: The process has ended.
        """
        section = section_address(process.pid, _SECTION, "_asyncio")
        if section is None:
            return None
        table = struct.unpack(f"<{len(_NAMES)}Q", reader.bytes_at(section, 8 * len(_NAMES)))
        return cls(process, reader, dict(zip(_NAMES, table, strict=True)))

    def find(self) -> tuple[set[int], list[int]]:
        """Return the addresses of the tasks that run, and of all tasks."""
        running, addresses = set(), []
        for interpreter in self._process.interpreters():
            addresses += self._list(interpreter + self._offsets["interpreter_tasks"])
            for thread in self._threads(interpreter):
                running.add(self._reader.word(thread + self._offsets["running_task"]))
                addresses += self._list(thread + self._offsets["thread_tasks"])
        return running, addresses

    def name(self, task: int) -> int:
        """Return the address of the object that is a task's name."""
        return self._reader.word(task + self._offsets["task_name"])

    def coroutine(self, task: int) -> int:
        """Return the address of a task's coroutine."""
        return self._reader.word(task + self._offsets["task_coro"])

    def awaiters(self, future: int) -> list[int]:
        """Return the tasks and futures that await a task or future."""
        awaiter = self._reader.word(future + self._offsets["task_awaited_by"])
        if not awaiter:
            return []
        is_set = self._reader.bytes_at(future + self._offsets["awaited_by_is_set"], 1)[0]
        return self._reader.members(awaiter) if is_set else [awaiter]

    def _threads(self, interpreter: int) -> Iterator[int]:
        thread = self._reader.word(interpreter + self._layout["interpreter_threads_head"])
        for _ in range(_MAX_TASKS):
            if not thread:
                return
            yield thread
            thread = self._reader.word(thread + self._layout["thread_next"])

    def _list(self, head: int) -> list[int]:
        """Return the tasks in a doubly linked list."""
        found: list[int] = []
        node = self._reader.word(head)
        while node not in (head, 0) and len(found) < _MAX_TASKS:
            found.append(node - self._offsets["task_node"])
            node = self._reader.word(node + self._layout["list_next"])
        return found
