"""A task runner with virtual time: tasks run only when a test requests it, in a fixed order.

Watched descriptors are real (pipes, socket pairs). As in the real runner, a round first runs the
tasks posted so far, and then polls the descriptors without waiting. The callbacks of ready
descriptors run in order: urgent ones first, then by descriptor number.
"""

from __future__ import annotations

import select
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from stretto.testing.fake_clock import NS_PER_MS, FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

    Task = Callable[[], object]

MAX_STEPS = 1_000_000
"""A test that needs more is taken for an endless loop."""


class _DelayedTask:
    __slots__ = ("task",)

    def __init__(self, task: Task) -> None:
        self.task: Task | None = task


class FakeTaskRunner:
    """A `TaskRunner` that a test drives with `run_until_idle` and `advance`.

    Args:
        clock: The clock that `advance` advances; share it with the code under test.
    """

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self._posted: deque[Task] = deque()
        self._left_in_round = 0
        self._polled = True
        self._delayed: list[tuple[int, int, _DelayedTask]] = []
        self._count = 0
        self._watches: dict[int, tuple[Task | None, Task | None, bool]] = {}

    def post(self, task: Task) -> None:
        """Run `task` in the next call of `run_until_idle`."""
        self._posted.append(task)

    def post_delayed(self, task: Task, delay_ms: float) -> object:
        """Run `task` after `advance` has advanced the time by `delay_ms`."""
        delayed = _DelayedTask(task)
        self._count += 1
        due = self.clock.boottime_ns() + round(delay_ms * NS_PER_MS)
        heappush(self._delayed, (due, self._count, delayed))
        return delayed

    def cancel(self, token: object) -> None:
        """Cancel a delayed task. No effect if it has run."""
        if isinstance(token, _DelayedTask):
            token.task = None

    def watch(
        self,
        fd: int,
        on_readable: Task | None,
        on_writable: Task | None = None,
        *,
        urgent: bool = False,
    ) -> None:
        """Call back while `fd` is ready; replaces an earlier watch of the same `fd`.

        If several descriptors are ready, `urgent` ones are handled first.
        """
        if on_readable is None and on_writable is None:
            self.unwatch(fd)
        else:
            self._watches[fd] = (on_readable, on_writable, urgent)

    def unwatch(self, fd: int) -> None:
        """Stop watching `fd`. No effect if it isn't watched."""
        self._watches.pop(fd, None)

    @property
    def watched(self) -> frozenset[int]:
        """The watched descriptors."""
        return frozenset(self._watches)

    @property
    def delayed_count(self) -> int:
        """Number of pending delayed tasks."""
        return sum(delayed.task is not None for _, _, delayed in self._delayed)

    def run_until_idle(self) -> None:
        """Run all tasks and callbacks that can run without advancing the time.

        Raises:
            AssertionError: The task runner doesn't become idle.
        """
        for _ in range(MAX_STEPS):
            if not self._step():
                return
        raise AssertionError(f"the task runner isn't idle after {MAX_STEPS} steps: endless loop?")

    def advance(self, milliseconds: float) -> None:
        """Advance the time; run each delayed task at its time."""
        end = self.clock.boottime_ns() + round(milliseconds * NS_PER_MS)
        self.run_until_idle()
        while (due := self._next_due()) is not None and due <= end:
            self._move_to(due)
            self.run_until_idle()
        self._move_to(end)
        self.run_until_idle()

    def _move_to(self, time_ns: int) -> None:
        # A task may have advanced the clock itself.
        self.clock.advance_ns(max(0, time_ns - self.clock.boottime_ns()))

    def _step(self) -> bool:
        if self._polled:  # A round begins here.
            self._polled = False
            self._left_in_round = len(self._posted)
        if self._left_in_round:
            self._left_in_round -= 1
            self._posted.popleft()()
            return True
        self._polled = True
        due = self._next_due()
        if due is not None and due <= self.clock.boottime_ns():
            task = heappop(self._delayed)[2].task
            assert task is not None  # `_next_due` has removed cancelled tasks.
            task()
            return True
        return self._poll() or bool(self._posted)

    def _next_due(self) -> int | None:
        while self._delayed and self._delayed[0][2].task is None:
            heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def _poll(self) -> bool:
        poll = select.poll()
        for fd, (on_readable, on_writable, _) in self._watches.items():
            wanted = (select.POLLIN if on_readable else 0) | (select.POLLOUT if on_writable else 0)
            poll.register(fd, wanted)
        for fd, events in sorted(poll.poll(0), key=self._turn):
            on_readable, on_writable, _ = self._watches[fd]
            if on_readable and events & ~select.POLLOUT:
                on_readable()
                return True
            if on_writable and events & ~select.POLLIN:
                on_writable()
                return True
        return False

    def _turn(self, ready: tuple[int, int]) -> tuple[bool, int]:
        fd, _ = ready
        urgent = self._watches[fd][2]
        return not urgent, fd
