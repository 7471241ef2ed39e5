"""`python.asyncio`: each step of a task is a slice on the thread that runs it.

A step is the time from a task's resumption to the next `await` that suspends it. Its slice has the
name of the coroutine. Events that the task itself emits are on the task's own track.

Flows lead from the creation of a task to its first step, from step to step, and from a task's last
step to the next step of the task that awaited it.

The last step of a task that failed has the argument `exception`. On CPython 3.14 and later the
argument `awaited_by` names the tasks that wait for the task, directly or through a future such as
that of `gather`.

Event loops with their own handles (uvloop) show only the creation of tasks.
"""

from __future__ import annotations

import sys
from _weakref import ref

import stretto
from stretto.client.track_event import slots
from stretto.profilers import functions
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Iterator
    from typing import Any, TypeGuard

category = stretto.Category("python.asyncio", "steps of asyncio tasks", ["slow"])


def _is_task(value: object) -> TypeGuard[Task[Any]]:
    tasks = sys.modules.get("asyncio.tasks")
    if tasks is None:
        return False
    # `Task` may be the class in C; `_PyTask` is the class in Python.
    return isinstance(value, tasks.Task) or isinstance(value, tasks._PyTask)  # noqa: SIM101, SLF001


def _name(task: Task[Any]) -> str:
    coroutine = task.get_coro()
    return str(getattr(coroutine, "__qualname__", None) or type(coroutine).__qualname__)


def _awaiters(future: Any) -> Iterator[Task[Any]]:
    """Return the tasks that wait for a future, from asyncio's own call graph."""
    for awaiter in getattr(future, "_asyncio_awaited_by", None) or ():  # CPython 3.14 and later
        if _is_task(awaiter):
            yield awaiter
        else:
            yield from _awaiters(awaiter)


class _Steps:
    """Observers: of each handle that the event loop runs, and of each task that is created."""

    def __init__(self) -> None:
        # Works like a WeakKeyDictionary, at a third of its cost.
        self._flows: dict[ref[Task[Any]], stretto.Flow] = {}

    def _flow(self, task: Task[Any]) -> stretto.Flow:
        flow = self._flows.get(ref(task))
        if flow is None:
            flow = self._flows[ref(task, self._flows.pop)] = stretto.Flow()
        return flow

    def _begin(self, handle: Any, timestamp: int | None = None) -> Any:
        """Begin the slice of a step; None if the handle's callback isn't a task's method."""
        task = getattr(handle._callback, "__self__", None)  # noqa: SLF001
        if not category.enabled or not _is_task(task):
            return None
        awaited = [arg for arg in handle._args or () if _is_task(arg)]  # noqa: SLF001
        arguments = {"task": task.get_name()}
        if awaiters := [awaiter.get_name() for awaiter in _awaiters(task)]:
            arguments["awaited_by"] = ", ".join(sorted(awaiters))
        step = category.slice(
            _name(task),
            track=stretto.thread_track(),
            timestamp=timestamp,
            flow=self._flow(task),
            terminating_flow=[self._flow(other) for other in awaited],
            args=arguments,
        )
        step.__enter__()
        return step, task

    def before_run(self, handle: Any) -> Any:
        return self._begin(handle)

    def after_run(self, begun: Any, _result: object) -> None:
        step, task = begun
        # task.exception() would mark the exception as retrieved.
        error = task._exception if task.done() else None  # noqa: SLF001
        step.__exit__(error and type(error), error, None)
        if error is not None and (exceptions := sys.modules.get("stretto.profilers.exceptions")):
            exceptions.on_kept(error, "task")

    def after_long_run(self, begin: int, handle: Any) -> None:
        begun = self._begin(handle, begin)
        if begun is not None:
            self.after_run(begun, None)

    def before_create(self, *_args: Any, **_kwargs: Any) -> Any:
        return category.enabled or None

    def after_create(self, _token: object, task: Any) -> None:
        if _is_task(task):
            category.instant(
                "create task",
                track=stretto.thread_track(),
                flow=self._flow(task),
                name=_name(task),
                task=task.get_name(),
            )


_patches: list[Patch] = []
"""That of auto detail first."""


def _switch(on: bool) -> None:
    auto_detail = functions.has_auto_detail()
    for index, patch in enumerate(_patches):
        patch.switch(on and (index == 0) == auto_detail)


def install() -> None:
    """Record the steps of tasks while a session records the category."""
    if not _patches:
        steps = _Steps()
        create = (steps.before_create, steps.after_create)
        _patches.append(Patch("asyncio.events", "Handle._run", None, steps.after_long_run))
        _patches.append(Patch("asyncio.events", "Handle._run", steps.before_run, steps.after_run))
        _patches.append(Patch("asyncio.base_events", "BaseEventLoop.create_task", *create))
        slots.observe(category, _switch)
