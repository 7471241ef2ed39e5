"""The lane of a task of asyncio or trio: its life, its coroutine calls and its waits are slices.

    Task-7                             the life of the task: from its creation until it is done
      shop.views.handler               a coroutine call, from its first to its last step
        asyncio.sleep
          await                        suspended, or ready and waiting for the thread

Outside of `await` the task runs. A task is looked at before a step, if it has been suspended long
enough to be seen. A look finds the coroutines that the task awaits at this time;
`coroutine_calls` says when they began, and when those of the look before ended.
"""

from __future__ import annotations

import os
import sys
from itertools import count

import stretto
from stretto.profilers import functions
from stretto.profilers.code_names import code_name
from stretto.profilers.coroutine_calls import Call, chain, ends_of, find_begins
from stretto.profilers.folded_code import FOLDED, FULL, is_folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from types import CodeType
    from typing import Any, TypeGuard

category = stretto.Category("python.asyncio", "asyncio tasks and their steps", ["slow"])

_MAX_NAMES = 4096

_ids = count(1)
_names: dict[int, tuple[CodeType, str | None]] = {}
"""Names by the code object's id: the hash of a code object goes through all its instructions."""


def task_types() -> tuple[type, ...]:
    """Return the types of asyncio's tasks; empty before asyncio is imported."""
    tasks = sys.modules.get("asyncio.tasks")
    # `Task` may be the class in C; `_PyTask` is the class in Python.
    return (tasks.Task, tasks._PyTask) if tasks else ()  # noqa: SLF001


def is_task(value: object) -> TypeGuard[Task[Any]]:
    """Whether a value is a task of asyncio.

    `isinstance` would run the property `__class__` of an object that the program awaits.
    """
    return issubclass(type(value), task_types())


def coroutine_name(task: Task[Any]) -> str:
    return _coroutine_name(task.get_coro())


def _coroutine_name(coroutine: Any) -> str:
    return str(getattr(coroutine, "__qualname__", None) or type(coroutine).__qualname__)


def _name(code: CodeType, frame: Any) -> str | None:
    """Return the name of the slice of a coroutine call; None if the call gets no slice."""
    if known := _names.get(id(code)):
        return known[1]
    if frame is None:  # The call has ended: its module is unknown.
        return code_name(code, None)
    module = frame.f_globals.get("__name__")
    name = None if is_folded(code, module, functions.imports()) else code_name(code, module)
    if len(_names) >= _MAX_NAMES:
        _names.clear()
    _names[id(code)] = code, name
    return name


def _module(code: CodeType, frame: Any) -> str | None:
    """Return the module of a coroutine call. After its end, it is known for asyncio's code only."""
    if frame is not None:
        return frame.f_globals.get("__name__")  # type: ignore[no-any-return]
    folder, file = os.path.split(code.co_filename)
    path = getattr(sys.modules.get("asyncio"), "__file__", None)
    is_asyncio = path is not None and os.path.dirname(path) == folder
    return f"asyncio.{file.removesuffix('.py')}" if is_asyncio else None


def _root(coroutine: Any) -> str | None:
    """Return the name of the outermost coroutine call that isn't folded; None if all are."""
    for _, code, frame in chain(coroutine):
        module = _module(code, frame)
        if not is_folded(code, module, FOLDED):
            return code_name(code, module)
    return None


def is_shown(coroutine: Any) -> bool:
    """Whether a task has a lane: asyncio's own tasks have one only with `--imports full`."""
    if functions.imports() == FULL or not hasattr(coroutine, "cr_code"):
        return True
    code = coroutine.cr_code
    module = _module(code, coroutine.cr_frame)
    return module is None or not (module.startswith("asyncio.") and is_folded(code, module, FOLDED))


class Lane:
    """Writes the slices of one asyncio task. All times are in nanoseconds."""

    __slots__ = ("_awaits", "_calls", "_name", "_track")

    group = stretto.Track("asyncio tasks")

    def __init__(self, task: Any, created: int) -> None:
        number = next(_ids)
        coroutine = self.coroutine(task)
        root = _root(coroutine) or _coroutine_name(coroutine)
        self._name = self.name(task)
        if self._name.endswith(root):  # trio and anyio give tasks such a name.
            self._name = f"task {number}"
        self._track = stretto.Track(f"{root} ({self._name})", parent=self.group, id=number)
        self._calls: list[Call] = []
        self._awaits = False
        category.begin(self._name, track=self._track, timestamp=created)

    def coroutine(self, task: Any) -> Any:
        return task.get_coro()

    def name(self, task: Any) -> str:
        return str(task.get_name())

    def result(self, task: Any) -> dict[str, str]:
        """Return how the task has ended, and its name if it was renamed, as arguments."""
        # task.exception() would mark the exception as retrieved.
        error = None if task.cancelled() else task._exception  # noqa: SLF001
        arguments = {"result": outcome_of(error, task.cancelled())}
        if (name := task.get_name()) != self._name:
            arguments["name"] = name
        return arguments

    def cause(self, task: Any) -> dict[str, str]:
        """Return what the suspended task waits for, as arguments of a slice."""
        future = getattr(task, "_fut_waiter", None)
        if future is None:
            return {}
        named = hasattr(future, "get_name")
        return {"on": future.get_name() if named else type(future).__qualname__}

    def look(self, task: Any, looked: int, suspended: int, now: int, resumes: bool) -> None:
        """Write what has changed since the last look.

        Args:
            task: the lane's task.
            looked: the time of the last look.
            suspended: the end of the task's last step; 0 before its first step.
            now: the time of this look.
            resumes: whether the task's next step begins now.
        """
        if not self._awaits:
            self._update_calls(task, looked, suspended or now)
            if suspended:
                self._awaits = True
                category.begin(
                    "await", track=self._track, timestamp=suspended, args=self.cause(task)
                )
        if resumes and self._awaits:
            self._awaits = False
            category.end(track=self._track, timestamp=now)

    def _update_calls(self, task: Any, looked: int, suspended: int) -> None:
        found = chain(self.coroutine(task))
        if found and getattr(found[0][0], "cr_running", False) and self._calls:
            return  # A running coroutine doesn't tell what it awaits.
        kept = 0
        for call, known in zip(found, self._calls, strict=False):
            if not known.lasts(call[0], looked, suspended):
                break
            kept += 1
        if kept < len(self._calls):
            looked = self._end_calls(kept, looked, suspended)
        if kept < len(found):
            self._begin_calls(found[kept:], looked, suspended)

    def _begin_calls(self, found: list[tuple[Any, Any, Any]], after: int, before: int) -> None:
        """Begin calls, the outermost first; a task's own coroutine begins with its first step."""
        calls = [Call(each, code, _name(code, frame)) for each, code, frame in found]
        inner = calls if self._calls else calls[1:]
        calls[0].begin = after
        if inner:
            find_begins(inner, after, before)
        for call in calls:
            if call.name is not None:
                args = {"begins_up_to_ns_earlier": call.unsure} if call.unsure else {}
                category.begin(call.name, track=self._track, timestamp=call.begin, args=args)
        self._calls += calls

    def _end_calls(self, kept: int, after: int, before: int) -> int:
        """End all calls but the outermost ones; return when the last one ended."""
        ended = self._calls[kept:][::-1]
        del self._calls[kept:]
        end = after
        for call, (end, later) in zip(ended, ends_of(ended, after, before), strict=True):
            if call.name is not None:
                args = {"ends_up_to_ns_later": later} if later else {}
                category.end(track=self._track, timestamp=end, args=args)
        return end

    def end(self, task: Any, looked: int, now: int) -> None:
        """Write the end of a task that is done."""
        if self._awaits:
            category.end(track=self._track, timestamp=now)
        if not self._calls and (name := _root(self.coroutine(task))):
            category.begin(name, track=self._track, timestamp=looked)
            category.end(track=self._track, timestamp=now)
        if len(self._calls) > 1:
            self._end_calls(1, looked, now)
        if self._calls and self._calls.pop().name is not None:
            category.end(track=self._track, timestamp=now)
        category.end(track=self._track, timestamp=now, args=self.result(task))


def outcome_of(error: BaseException | None, cancelled: bool) -> str:
    """Return "done", "cancelled", or the name of the exception's type."""
    if cancelled:
        return "cancelled"
    return "done" if error is None else type(error).__qualname__
