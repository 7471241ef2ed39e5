"""Named timers of one session."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from stretto.base.clock import Clock
    from stretto.base.task_runner import TaskRunner

SUSPEND_CHECK_MS: Final = 1000
"""Period in ms at which a timer that counts suspended time reads the clock."""


class Timers:
    """Delayed tasks by name; a new task replaces the earlier task of the same name."""

    def __init__(self, runner: TaskRunner, clock: Clock) -> None:
        self._runner = runner
        self._clock = clock
        self._tokens: dict[str, object] = {}

    def once(self, name: str, delay_ms: float, task: Callable[[], object]) -> None:
        """Run `task` once, after `delay_ms`."""
        self.cancel(name)

        def run() -> None:
            self._tokens.pop(name, None)
            task()

        self._tokens[name] = self._runner.post_delayed(run, delay_ms)

    def once_counting_suspend(self, name: str, delay_ms: float, task: Callable[[], object]) -> None:
        """Run `task` once, after `delay_ms`; time in which the machine is suspended counts, too.

        The task runner's clock stops during a suspend, so the trace clock is read every second.
        """
        due_ns = self._clock.boottime_ns() + int(delay_ms * 1_000_000)

        def check() -> None:
            left_ms = (due_ns - self._clock.boottime_ns()) / 1_000_000
            if left_ms > 0:
                self.once(name, min(left_ms, SUSPEND_CHECK_MS), check)
            else:
                task()

        self.once(name, min(delay_ms, SUSPEND_CHECK_MS), check)

    def every(self, name: str, period_ms: int, task: Callable[[], object]) -> None:
        """Run `task` at each multiple of `period_ms` of the wall time, until cancelled."""

        def run() -> None:
            self.every(name, period_ms, task)
            task()

        self.once(name, self._to_next_multiple(period_ms), run)

    def _to_next_multiple(self, period_ms: int) -> int:
        # At multiples of the period in wall time, all sessions of all machines wake up together.
        return period_ms - self._clock.walltime_ns() // 1_000_000 % period_ms

    def cancel(self, name: str) -> None:
        """Cancel a task. No effect if there is none."""
        token = self._tokens.pop(name, None)
        if token is not None:
            self._runner.cancel(token)

    def cancel_all(self) -> None:
        """Cancel every task."""
        for name in list(self._tokens):
            self.cancel(name)
