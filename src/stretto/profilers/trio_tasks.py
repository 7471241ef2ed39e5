"""Tasks of trio have lanes (`task_lanes`), like those of asyncio.

An instrument of trio reports the steps of tasks. It is added to each run of trio that begins, and
to the run in whose task a session begins. The tasks of trio itself have no lanes.
"""

from __future__ import annotations

import sys

import stretto
from stretto import _pyhooks
from stretto.profilers.patch import Patch
from stretto.profilers.task_lanes import Lane, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RUN = "trio._core._run"
_outcomes: dict[Any, Any] = {}
"""The outcomes of the tasks that end now."""


class TrioLane(Lane):
    """Writes the slices of one task of trio."""

    __slots__ = ()

    group = stretto.Track("trio tasks")

    def coroutine(self, task: Any) -> Any:
        return task.coro

    def name(self, task: Any) -> str:
        return str(task.name)

    def result(self, task: Any) -> dict[str, str]:
        error = getattr(_outcomes.get(task), "error", None)
        return {"result": outcome_of(error, type(error).__name__ == "Cancelled")}

    def cause(self, _task: Any) -> dict[str, str]:
        return {}


def is_task(value: object) -> bool:
    run = sys.modules.get(_RUN)
    return run is not None and isinstance(value, run.Task)


class _Instrument:
    def task_spawned(self, task: Any) -> None:
        frame = task.coro.cr_frame
        if frame is None or str(frame.f_globals.get("__name__")).startswith("trio._core."):
            return
        begin = _pyhooks.creation_begins()
        if begin is not None:
            _pyhooks.task_created(begin, task)

    before_task_step = staticmethod(_pyhooks.task_resumes)
    after_task_step = staticmethod(_pyhooks.task_suspends)


_instrument = _Instrument()


def _before_setup(*_args: object, **_options: object) -> bool:
    return True


def _after_setup(_token: bool, runner: Any) -> None:
    if runner is not None:
        runner.instruments.add_instrument(_instrument)


def _before_exit(_runner: Any, task: Any, outcome: Any) -> None:
    _outcomes[task] = outcome
    _pyhooks.task_exits(task)
    del _outcomes[task]


def watch_existing_tasks() -> None:
    """Watch the tasks of this thread's run of trio. In the trace, the tasks begin now."""
    run = sys.modules.get(_RUN)
    runner = run and getattr(run.GLOBAL_RUN_CONTEXT, "runner", None)
    if runner is not None:
        runner.instruments.add_instrument(_instrument)
        for task in runner.tasks:
            _instrument.task_spawned(task)


def patches() -> list[Patch]:
    """Return the patches that report new runs of trio and the ends of tasks."""
    return [
        Patch(_RUN, "setup_runner", _before_setup, _after_setup),
        Patch(_RUN, "Runner.task_exited", _before_exit),
    ]
