"""The track of the running task of asyncio or trio.

Slices of interleaved tasks can't nest on one thread's track, so each task has its own track. It is
named by the task's coroutine, and is below the track of its thread. A track belongs to the task
object, not to a context variable, which a child task would inherit.

The native part calls this module only when the interpreter's context has changed, which happens
once per step of a task. After `set_current_task` it calls this module only for new tasks of
asyncio, and in threads that run no loop of asyncio. asyncio and trio aren't imported here: a
program that hasn't imported them has no tasks.
"""

from __future__ import annotations

import sys
from _weakref import ref

from stretto import _native
from stretto.base.hashes import fnv1a
from stretto.protozero import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable
    from typing import Any

    CurrentTask = Callable[[], Task[Any] | None]

_UUID, _NAME, _PARENT_UUID = 1, 2, 5

# This dict works like a WeakKeyDictionary, without importing weakref's Python module.
_tracks: dict[ref[Any], _native.Track] = {}
_numbers = iter(range(1, sys.maxsize))  # To import `itertools` takes 0.1 ms.


def _task_name(task: Any) -> str:
    coroutine = task.get_coro() if hasattr(task, "get_coro") else task.coro
    frame = getattr(coroutine, "cr_frame", None)
    if frame is not None and str(frame.f_globals.get("__name__")).startswith("anyio."):
        # The outermost coroutine of all anyio tasks is the same one, of anyio. The task's name is
        # that of the task's function.
        return str(task.get_name() if hasattr(task, "get_name") else task.name)
    name = getattr(coroutine, "__qualname__", None) or type(coroutine).__qualname__
    return str(name)


def _make_track(task: Any) -> _native.Track:
    parent = _native.thread_track()
    seed = b"task" + next(_numbers).to_bytes(8, "little") + parent.uuid.to_bytes(8, "little")
    uuid = fnv1a(seed)
    descriptor = wire.varint_field(_UUID, uuid)
    descriptor += wire.bytes_field(_NAME, _task_name(task).encode("utf-8", "replace"))
    descriptor += wire.varint_field(_PARENT_UUID, parent.uuid)
    return _native.fixed_track(uuid, descriptor, parent)


def _forget(task: ref[Any]) -> None:
    _tracks.pop(task, None)


_current_task: CurrentTask | None = None
"""`asyncio.current_task`, once asyncio is imported."""


def _find_current_task() -> CurrentTask | None:
    global _current_task  # None until asyncio is imported
    asyncio = sys.modules.get("asyncio")
    _current_task = getattr(asyncio, "current_task", None)
    if _current_task is not None:
        _native.set_current_task(_current_task, _python_tasks(asyncio))
    return _current_task


def _python_tasks(asyncio: Any) -> CurrentTask | None:
    """Return the function that finds running tasks of asyncio's Python class; None before 3.14.

    asyncio has a Task class in C and one in Python. From 3.14 on, `asyncio.current_task` finds only
    tasks of the class in C.
    """
    return asyncio.tasks._py_current_task if sys.version_info >= (3, 14) else None  # noqa: SLF001


def _running_asyncio_task() -> Task[Any] | None:
    current_task = _current_task or _find_current_task()
    try:
        task = current_task() if current_task is not None else None
    except RuntimeError:  # No event loop runs in this thread.
        return None
    if task is None and current_task is not None:
        python_tasks = _python_tasks(sys.modules["asyncio"])
        task = python_tasks() if python_tasks is not None else None
    return task


def _running_trio_task() -> Any:
    trio = sys.modules.get("trio._core._run")
    return getattr(getattr(trio, "GLOBAL_RUN_CONTEXT", None), "task", None)


def current_task_track() -> _native.Track | None:
    """Return the running task's track, made at its first use; None outside of tasks."""
    task = _running_asyncio_task() or _running_trio_task()
    if task is None:
        return None
    track = _tracks.get(ref(task))
    if track is None:
        track = _tracks[ref(task, _forget)] = _make_track(task)
    return track
