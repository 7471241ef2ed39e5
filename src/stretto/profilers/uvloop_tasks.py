"""Steps of tasks on uvloop are calls of asyncio's `Handle._run`, as on asyncio's own loops.

Steps on uvloop can't be observed, because uvloop has handles of its own. So while a session records
tasks, uvloop gets the method `_run` of an asyncio handle as the callback of each step.
"""

from __future__ import annotations

import sys

from stretto import _pyhooks
from stretto.profilers.patch import Patch
from stretto.profilers.task_lanes import is_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context
    from typing import Any


class _CallSoon(Patch):
    def __init__(self) -> None:
        super().__init__("uvloop", "Loop.call_soon", None)

    def wrap(self, function: Any) -> Any:
        def call_soon(
            loop: Any, callback: Callable[..., Any], *args: Any, context: Context | None = None
        ) -> Any:
            if not is_task(getattr(callback, "__self__", None)):
                return function(loop, callback, *args, context=context)
            handle = sys.modules["asyncio.events"].Handle(callback, args, loop, context)
            return function(loop, handle._run)  # noqa: SLF001

        call_soon.__wrapped__ = function  # type: ignore[attr-defined]
        return call_soon


def patches() -> list[Patch]:
    """Return the patches that report the steps and the creation of tasks."""
    observers = _pyhooks.creation_begins, _pyhooks.task_created
    return [
        _CallSoon(),
        Patch("uvloop", "Loop.create_task", *observers),
        Patch("uvloop", "Loop.is_running", _pyhooks.eager_task_begins),
    ]
