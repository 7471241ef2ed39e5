"""Finds the tasks of asyncio in CPython 3.11 to 3.13, through the module `asyncio.tasks`.

    sys.modules ─> asyncio.tasks ─> _all_tasks, or _scheduled_tasks (3.12): a WeakSet of tasks
                                 ─> _eager_tasks (3.12): a set of tasks
                                 ─> _current_tasks: {loop: task that runs}

These versions don't say by what a task is awaited, but they have what is needed to find out:

- a task has the future that it waits for: the future is awaited by the task;
- `gather`, `shield`, `wait` and `wait_for` give each task a callback that has, in its closure or
  arguments, the future for which their caller waits: the task is awaited by this future;
- a `TaskGroup` gives its tasks a method as callback, and has the task that entered it.

The offsets are those of `FutureObj` and `TaskObj` (Modules/_asynciomodule.c). They are the same in
all releases of a version. Tasks of another class that isn't derived from the C class are left out.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.profilers.sampling.objects import ObjectReader
    from stretto.profilers.sampling.process import PythonProcess

_FIRST_CALLBACK, _MORE_CALLBACKS = 24, 40
_STATE = {(3, 11): 88, (3, 12): 88, (3, 13): 96}
_PENDING = 0
_WAITS_FOR = {(3, 11): 128, (3, 12): 128, (3, 13): 112}
"""By version: where a task has the future that it waits for; its coroutine and name follow."""
_COROUTINE, _NAME = 8, 16
_SIZE, _ITEMS = 16, 24
"""Offsets in a list or tuple: a list has the address of its items there."""
_QUALIFIED_NAME, _CLOSURE, _CELL = 40, 72, 16
_METHOD_FUNCTION, _METHOD_SELF = 16, 24
_PARTIAL_FUNCTION, _PARTIAL_ARGUMENTS = 16, 24
_REFERENT = 16

_TASK, _FUTURE = "_asyncio.Task", "_asyncio.Future"
_COUPLINGS = frozenset(
    {
        "gather.<locals>._done_callback",
        "shield.<locals>._inner_done_callback",
        "_wait.<locals>._on_completion",
        "_release_waiter",
        "TaskGroup._on_task_done",
    }
)
"""The functions of asyncio whose calls let a future end, when the one before it has ended."""
_MAX_ITEMS = 256
_MAX_CALLBACKS = 1 << 16
"""The most callbacks that are read for one tree."""


class ModuleTasks:
    """The tasks of one process."""

    def __init__(self, modules: list[int], reader: ObjectReader, version: tuple[int, int]) -> None:
        self._modules, self._reader = modules, reader
        self._state, self._waits_for = _STATE[version], _WAITS_FOR[version]
        self._waiting: dict[int, list[int]] = {}
        """The tasks that wait for a future."""
        self._callbacks_left = _MAX_CALLBACKS

    @classmethod
    def of(cls, process: PythonProcess, reader: ObjectReader) -> ModuleTasks | None:
        """Return the tasks of a process; None without asyncio.

        Raises:
            OSError: The process has ended.
        """
        modules = []
        for each in process.modules():
            with suppress(ValueError, OSError):  # This interpreter hasn't imported it.
                modules.append(reader.module(each, "asyncio.tasks"))
        return cls(modules, reader, process.layout.version) if modules else None

    def find(self) -> tuple[set[int], list[int]]:
        """Return the addresses of the tasks that run, and of all tasks."""
        running, found = set(), []
        for module in self._modules:
            with suppress(OSError, ValueError, KeyError):
                names = self._reader.names(module)
                running |= {task for _, task in self._reader.items(names["_current_tasks"])}
                found += [task for task in self._tasks(names) if self._is_pending(task)]
        for task in found:
            with suppress(OSError):
                future = self._reader.word(task + self._waits_for)
                self._waiting.setdefault(future, []).append(task)
        self._waiting.pop(0, None)
        return running, found

    def _tasks(self, names: dict[str, int]) -> Iterator[int]:
        """Yield the tasks in the sets of a module with these names."""
        for name in ("_all_tasks", "_scheduled_tasks"):
            if name in names:
                references = self._reader.attributes(names[name])["data"]
                for each in self._reader.members(references):
                    with suppress(OSError):
                        yield self._reader.word(each + _REFERENT)
        if "_eager_tasks" in names:
            yield from self._reader.members(names["_eager_tasks"])

    def name(self, task: int) -> int:
        """Return the address of the object that is a task's name."""
        return self._reader.word(task + self._waits_for + _NAME)

    def coroutine(self, task: int) -> int:
        """Return the address of a task's coroutine."""
        return self._reader.word(task + self._waits_for + _COROUTINE)

    def awaiters(self, future: int) -> Iterator[int]:
        """Yield the tasks and futures that await a task or future."""
        yield from self._waiting.get(future, ())
        for callback in self._callbacks(future):
            with suppress(OSError, ValueError, KeyError):
                yield from (each for each in self._coupled(callback) if self._is_future(each))

    def _callbacks(self, future: int) -> Iterator[int]:
        """Yield the callbacks of a future."""
        first = self._reader.word(future + _FIRST_CALLBACK)
        more = self._reader.word(future + _MORE_CALLBACKS)
        pairs = self._items(more, self._reader.word(more + _ITEMS)) if more else []
        for callback in (first, *(self._reader.word(pair + _ITEMS) for pair in pairs)):
            if callback and self._callbacks_left:
                self._callbacks_left -= 1
                yield callback

    def _coupled(self, callback: int) -> list[int]:
        """Return the objects that a callback of asyncio holds."""
        reader = self._reader
        kind = reader.type_name(callback)
        if kind == "function" and self._is_coupling(callback):
            cells = self._tuple(reader.word(callback + _CLOSURE))
            return [reader.word(cell + _CELL) for cell in cells]
        if kind == "functools.partial" and self._is_coupling(
            reader.word(callback + _PARTIAL_FUNCTION)
        ):
            return self._tuple(reader.word(callback + _PARTIAL_ARGUMENTS))
        if kind == "method" and self._is_coupling(reader.word(callback + _METHOD_FUNCTION)):
            group = reader.attributes(reader.word(callback + _METHOD_SELF))
            return [group["_parent_task"]]
        return []

    def _is_coupling(self, function: int) -> bool:
        return self._reader.text(self._reader.word(function + _QUALIFIED_NAME)) in _COUPLINGS

    def _is_pending(self, task: int) -> bool:
        try:
            is_task = self._is_a(task, _TASK)
            return is_task and self._reader.bytes_at(task + self._state, 4)[0] == _PENDING
        except OSError:
            return False  # It has ended meanwhile.

    def _is_future(self, address: int) -> bool:
        return self._is_a(address, _FUTURE) or self._is_a(address, _TASK)

    def _is_a(self, address: int, name: str) -> bool:
        return bool(address) and name in self._reader.type_names(address)

    def _tuple(self, address: int) -> list[int]:
        return self._items(address, address + _ITEMS)

    def _items(self, address: int, first: int) -> list[int]:
        """Return the items of a list or tuple, of which the first one is at an address."""
        (size,) = struct.unpack("<q", self._reader.bytes_at(address + _SIZE, 8))
        count = max(0, min(size, _MAX_ITEMS))
        return list(struct.unpack(f"<{count}Q", self._reader.bytes_at(first, 8 * count)))
