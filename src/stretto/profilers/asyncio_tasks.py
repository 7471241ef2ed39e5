"""`python.asyncio`: each task has a lane, and each step is a slice on the thread that runs it.

`task_lanes` describes the lanes. A step is the time from a task's resumption to the next `await`
that suspends it. Its slice has the name of the coroutine. Events that the task itself emits are on
the task's own track.

Flows lead from the creation of a task to its first step, from step to step, and from a task's last
step to the next step of the task that awaited it.

The last step of a task that failed has the argument `exception`. On CPython 3.14 and later the
argument `awaited_by` names the tasks that wait for the task, directly or through a future such as
that of `gather`.

With auto detail, and beside samples of stacks, tasks and steps that are shorter than the threshold
are not shown. Tasks of trio have lanes, too, but no slices for steps and no flows (`trio_tasks`).
"""

from __future__ import annotations

import sys
from _weakref import ref

import stretto
from stretto import _pyhooks
from stretto._native import boottime_ns, call_untraced
from stretto.client.track_event import slots
from stretto.profilers import functions, trio_tasks, uvloop_tasks
from stretto.profilers.life_lanes import observers
from stretto.profilers.patch import Patch
from stretto.profilers.task_lanes import (
    Lane,
    category,
    coroutine_name,
    is_shown,
    is_task,
    task_types,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Iterable, Iterator
    from typing import Any


TOO_MANY = "tasks without a lane"
"""The instant that counts them in the trace, if their number was too large."""
WAITS = "waits without a slice"
"""The instant that counts the waits below 1 ms that got no slice, because that took too long."""

_too_many = _waits = 0  # The numbers of such tasks and waits in the last session.


def _awaiters(future: Any) -> Iterator[Task[Any]]:
    """Return the tasks that wait for a future, from asyncio's own call graph."""
    for awaiter in getattr(future, "_asyncio_awaited_by", None) or ():  # CPython 3.14 and later
        if is_task(awaiter):
            yield awaiter
        else:
            yield from _awaiters(awaiter)


def _names_of_awaiters(task: Task[Any]) -> str | None:
    """Return the argument `awaited_by`; None if no task waits for this one."""
    return ", ".join(sorted(awaiter.get_name() for awaiter in _awaiters(task))) or None


class _Steps:
    """Observers: of each handle that the event loop runs, and of each task that is created."""

    def __init__(self) -> None:
        # Works like a WeakKeyDictionary, at a third of its cost.
        self.known: dict[ref[Task[Any]], tuple[str, stretto.Flow]] = {}
        self.left_out = 0
        """The number of steps without a slice because the program has greenlets."""

    def describe(self, task: Task[Any]) -> tuple[str, stretto.Flow]:
        """Return the name of a task's steps, and their flow."""
        known = self.known.get(ref(task))
        if known is None:
            known = self.known[ref(task, self.known.pop)] = coroutine_name(task), stretto.Flow()
        return known

    def _flow(self, task: Task[Any]) -> stretto.Flow:
        return self.describe(task)[1]

    def before_run(self, handle: Any) -> Any:
        """Begin the slice of a step; None if the handle's callback isn't a task's method."""
        task = getattr(handle._callback, "__self__", None)  # noqa: SLF001
        if not category.enabled or not is_task(task):
            return None
        if _pyhooks.follows_greenlets():  # The slice would not end when its thread leaves it.
            self.left_out += 1
            return None
        awaited = [arg for arg in handle._args or () if is_task(arg)]  # noqa: SLF001
        arguments = {"task": task.get_name()}
        if awaiters := _names_of_awaiters(task):
            arguments["awaited_by"] = awaiters
        step = category.slice(
            coroutine_name(task),
            track=stretto.thread_track(),
            flow=self._flow(task),
            terminating_flow=[self._flow(other) for other in awaited],
            args=arguments,
        )
        step.__enter__()
        return step, task

    def after_run(self, begun: Any, _result: object) -> None:
        step, task = begun
        # task.exception() would mark the exception as retrieved.
        error = task._exception if task.done() else None  # noqa: SLF001
        step.__exit__(error and type(error), error, None)

    def before_create(self, *_args: Any, **_kwargs: Any) -> Any:
        return category.enabled or None

    def after_create(self, _token: object, task: Any) -> None:
        if is_task(task):
            category.instant(
                "create task",
                track=stretto.thread_track(),
                flow=self._flow(task),
                name=coroutine_name(task),
                task=task.get_name(),
            )


def _make_lane(task: Any, created: int) -> Lane | None:
    if trio_tasks.is_task(task):
        return trio_tasks.TrioLane(task, created)
    return Lane(task, created) if is_shown(task.get_coro()) else None


def _failed(error: object) -> None:
    if exceptions := sys.modules.get("stretto.profilers.exceptions"):
        exceptions.on_kept(error, "task")


def write_pending() -> None:
    """Write the tasks that are not done, at the end of a session or of the process."""
    global _too_many, _waits
    short, _too_many, _waits = _pyhooks.look_at_tasks()
    if short or _too_many:
        name = TOO_MANY if _too_many else f"short {TOO_MANY}"
        arguments = {"too_short": short, "too_many": _too_many}
        category.instant(name, track=Lane.group, args=arguments)
    if _waits:
        category.instant(WAITS, track=Lane.group, args={"too_many": _waits})


def problems() -> list[str]:
    """Return lines about tasks and waits that are left out, after the end of the last session."""
    lines = []
    if _too_many:
        lines.append(f"left out: {_too_many:,} {TOO_MANY}: 250 a second have one (--full: all)")
    if _waits:
        lines.append(f"left out: {_waits:,} {WAITS}, each below 1 ms (--full: all)")
    if _steps.left_out:
        count = f"{_steps.left_out:,}"
        lines.append(
            f"left out: {count} steps of tasks: the program has greenlets (only with --full)"
        )
    return lines


_lanes: list[Patch] = []
_full_steps: list[Patch] = []
_steps = _Steps()


def _tasks_of_loop() -> Iterable[Task[Any]]:
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and (loop := asyncio._get_running_loop()):  # noqa: SLF001
        return asyncio.all_tasks(loop)  # type: ignore[no-any-return]
    return ()


def _find_tasks() -> Iterable[Task[Any]]:
    return call_untraced(_tasks_of_loop)


def _watch_existing_tasks() -> None:
    """Watch the tasks of this thread's event loop. In the trace, the tasks begin now."""
    now = boottime_ns()
    for task in _tasks_of_loop():
        _pyhooks.task_created(now, task)
    trio_tasks.watch_existing_tasks()


def _switch(on: bool) -> None:
    full = functions.has_short_steps()
    _pyhooks.watch_steps(
        category if on and not full else None,
        _steps.describe,
        _steps.known,
        task_types,
        _names_of_awaiters if sys.version_info >= (3, 14) else None,
    )
    if on:
        _pyhooks.watch_tasks(*observers(_make_lane), _failed, _find_tasks, full)
        _watch_existing_tasks()
    # The wrappers of `_full_steps` are around the wrappers of `_lanes`. So `_full_steps` is
    # switched on last, and is switched off first.
    for patch in _lanes if on else _full_steps:
        patch.switch(on)
    for patch in _full_steps if on else _lanes:
        patch.switch(on and (full or patch in _lanes))
    if not on:
        _pyhooks.watch_tasks(None, None, None, None, False)


def install() -> None:
    """Record tasks and their steps while a session records the category."""
    if not _lanes:
        run, create = "Handle._run", "BaseEventLoop.create_task"
        observe_create = (_pyhooks.creation_begins, _pyhooks.task_created)
        _lanes.append(Patch("asyncio.events", run, None, _pyhooks.long_step_ended))
        _lanes.append(Patch("asyncio.base_events", create, *observe_create))
        # asyncio.Task(..., eager_start=True) calls this method of the event loop.
        observe_begin = (_pyhooks.eager_task_begins, None)
        _lanes.append(Patch("asyncio.base_events", "BaseEventLoop.is_running", *observe_begin))
        _lanes.extend(uvloop_tasks.patches() + trio_tasks.patches())
        steps = (_steps.before_run, _steps.after_run)
        _full_steps.append(Patch("asyncio.events", run, *steps))
        observe_create = (_steps.before_create, _steps.after_create)
        _full_steps.append(Patch("asyncio.base_events", create, *observe_create))
        _full_steps.append(Patch("uvloop", "Loop.create_task", *observe_create))
        slots.observe(category, _switch)
        slots.before_disable.append(write_pending)
