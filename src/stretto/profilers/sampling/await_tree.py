"""Reads the tasks of asyncio in a running process: their coroutines, and which task awaits which.

CPython 3.14 and later keep what is needed, and a table of its offsets in the section
`.AsyncioDebug`, of the extension `_asyncio` or of the interpreter's file:

    interpreter, thread ─> list of tasks ─> task ─> name
                                                 ─> awaited_by: a task, a future, or a set of them
                                                 ─> coroutine ─> what it awaits ─> ...

A coroutine that is suspended in an `await` has the awaited object on top of its stack. A task that
is awaited by a future, such as that of `asyncio.gather`, is awaited by those that await the future.

The process runs meanwhile: what can't be read is left out, and all lists are bounded.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from stretto.profilers.sampling.line_table import line_at
from stretto.profilers.sampling.objects import ObjectReader
from stretto.profilers.sampling.process import section_address
from stretto.profilers.sampling.stacks import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.profilers.sampling.process import PythonProcess

_SECTION = ".AsyncioDebug"
_NAMES = (
    "task_size", "task_name", "task_awaited_by", "is_task", "awaited_by_is_set", "task_coro",
    "task_node", "interpreter_size", "interpreter_tasks", "thread_size", "running_loop",
    "running_task", "thread_tasks",
)  # fmt: skip
"""The offsets in the section, in their order (Modules/_asynciomodule.c)."""

_MAX_TASKS = 10_000
_MAX_DEPTH = 100
_MAX_AWAITERS = 1 << 14
_MAX_LINE_TABLE = 1 << 16


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


def read_tasks(process: PythonProcess) -> list[Task] | None:
    """Return the tasks of a process; None before CPython 3.14, and without asyncio.

    Raises:
        OSError: The process has ended.
    """
    if process.layout.version < (3, 14):
        return None
    section = section_address(process.pid, _SECTION, "_asyncio")
    if section is None:
        return None
    reader = ObjectReader(process.pid, process.layout)
    table = struct.unpack(f"<{len(_NAMES)}Q", reader.bytes_at(section, 8 * len(_NAMES)))
    return _Tasks(process, reader, dict(zip(_NAMES, table, strict=True))).read()


class _Tasks:
    """Reads the tasks of one process, by the offsets of its `_asyncio`."""

    def __init__(
        self, process: PythonProcess, reader: ObjectReader, offsets: dict[str, int]
    ) -> None:
        self._process, self._reader, self._offsets = process, reader, offsets
        self._layout = process.layout

    def read(self) -> list[Task]:
        running, addresses = set(), []
        for interpreter in self._process.interpreters():
            addresses += self._list(interpreter + self._offsets["interpreter_tasks"])
            for thread in self._threads(interpreter):
                running.add(self._reader.word(thread + self._offsets["running_task"]))
                addresses += self._list(thread + self._offsets["thread_tasks"])
        known = set(addresses)
        tasks = (self._task(address, running, known) for address in dict.fromkeys(addresses))
        return [task for task in tasks if task is not None]

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

    def _task(self, address: int, running: set[int], known: set[int]) -> Task | None:
        offsets, word = self._offsets, self._reader.word
        try:
            return Task(
                address,
                self._name(word(address + offsets["task_name"])),
                address in running,
                list(self._frames(word(address + offsets["task_coro"]))),
                sorted(set(self._awaiters(address, known, 0))),
            )
        except (OSError, ValueError):
            return None  # It has ended meanwhile.

    def _name(self, address: int) -> str:
        """Return a task's name; asyncio makes the text of a default one only when it is asked."""
        try:
            return self._reader.text(address)
        except (OSError, ValueError):
            return f"Task-{self._reader.integer(address)}"

    def _awaiters(self, future: int, known: set[int], depth: int) -> Iterator[int]:
        """Yield the tasks that await a task or future."""
        awaiter = self._reader.word(future + self._offsets["task_awaited_by"])
        is_set = self._reader.bytes_at(future + self._offsets["awaited_by_is_set"], 1)[0]
        for each in self._members(awaiter) if awaiter and is_set else [awaiter]:
            if each in known:
                yield each
            elif each and depth < _MAX_DEPTH:
                yield from self._awaiters(each, known, depth + 1)

    def _members(self, address: int) -> list[int]:
        """Return the members of a set."""
        mask = self._reader.word(address + self._layout["set_mask"])
        table = self._reader.word(address + self._layout["set_table"])
        if mask >= _MAX_AWAITERS:
            raise ValueError("no set")
        entries = struct.iter_unpack("<Qq", self._reader.bytes_at(table, 16 * (mask + 1)))
        return [key for key, digest in entries if key and digest != -1]

    def _frames(self, coroutine: int) -> Iterator[Frame]:
        """Yield the frame of a coroutine, and of those that it awaits."""
        layout, word = self._layout, self._reader.word
        kind = word(coroutine + layout["object_type"])
        for _ in range(_MAX_DEPTH):
            state = self._reader.bytes_at(coroutine + layout["gen_frame_state"], 1)[0]
            frame = coroutine + layout["gen_iframe"]
            if state == layout["gen_cleared"]:
                return
            yield self._frame(frame)
            if state != layout["gen_suspended_in_await"]:
                return
            top = word(frame + layout["frame_stackpointer"])
            coroutine = word(top - layout["gen_awaited_depth"]) & ~layout["code_tag"]
            if not coroutine or word(coroutine + layout["object_type"]) != kind:
                return

    def _frame(self, frame: int) -> Frame:
        layout, reader = self._layout, self._reader
        code = reader.word(frame + layout["frame_code"]) & ~layout["code_tag"]
        name = reader.code_name(code)
        instruction = reader.word(frame + layout["frame_instruction"])
        offset = instruction - code - layout["code_start"]
        table = reader.word(code + layout["code_line_table"])
        size = min(reader.word(table + layout["bytes_size"]), _MAX_LINE_TABLE)
        first = int.from_bytes(reader.bytes_at(code + layout["code_first_line"], 4), "little")
        line = line_at(reader.bytes_at(table + layout["bytes_data"], size), first, offset)
        return Frame(name.function, name.filename, line)
