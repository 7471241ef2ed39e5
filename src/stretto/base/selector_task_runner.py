"""The task runner of real programs: one thread, `epoll`, and a wake descriptor.

Until a descriptor is watched, the runner waits for a lock instead, and opens no descriptors: the
service inside a program watches none, and to import `select` takes 0.3 ms.

Rules
- Everything runs on the thread that calls `run` or `run_until`. `post`, `post_delayed` and `quit`
  may be called from any thread, and from a signal handler.
- A round waits until there is something to do, then runs the callbacks of ready descriptors, the
  tasks posted so far, and the delayed tasks that are due. A task that posts itself again therefore
  can't block other tasks.
- Callbacks of urgent descriptors run first in each round.
- All other callbacks may run for `SLICE_NS` per round, and so may tasks. The remaining ones run in
  the next round, before newer ones.
- An exception of a task leaves `run`; the task is removed, all other tasks stay queued, and `run`
  may be called again.
- A descriptor is unwatched before it is closed.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from stretto.base.c_modules import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from select import epoll

    Task = Callable[[], object]


EPOLLIN, EPOLLOUT = 1, 4
"""The values of <sys/epoll.h>: `select` is imported when the first descriptor is watched."""


MAX_SLEEP_S = 86_400.0
"""The longest single wait: the kernel accepts at most 24 days. Longer waits are repeated."""


SLICE_NS = 5_000_000
"""The time for a round's callbacks, and again for its tasks, before the next round begins."""


class _DelayedTask:
    """The token of a delayed task. `task` is None after it was cancelled."""

    __slots__ = ("due_ns", "task")

    def __init__(self, task: Task, due_ns: int) -> None:
        self.task: Task | None = task
        self.due_ns = due_ns


class _Watch:
    __slots__ = ("on_readable", "on_writable", "urgent")

    def __init__(self, on_readable: Task | None, on_writable: Task | None, *, urgent: bool) -> None:
        self.on_readable = on_readable
        self.on_writable = on_writable
        self.urgent = urgent


class SelectorTaskRunner:
    """A `TaskRunner` on `epoll`. The modules `selectors` and `enum` take longer to import."""

    def __init__(self) -> None:
        self._posted: deque[Task] = deque()
        self._new_delayed: deque[_DelayedTask] = deque()
        # The next task is the last one. Sorting a list that is sorted but for its end takes linear
        # time, and a program has a few dozens of them; `_heapq` takes 0.2 ms to import.
        self._delayed: list[tuple[int, int, _DelayedTask]] = []
        self._delayed_count = 0
        self._quit = False
        # True from the time at which a round computes its waiting time until the wait ends. Only in
        # this time a new task has to wake the runner.
        self._waits = False
        self._woken = allocate_lock()  # Released by `_wake` while there is no wake descriptor.
        self._woken.acquire()
        self._epoll: epoll | None = None
        self._wake_fd = -1
        self._watches: dict[int, _Watch] = {}
        # Descriptors that were ready in the last round, but whose callbacks had no time to run.
        self._unserved: list[int] = []

    def post(self, task: Task) -> None:
        """Run `task` soon, after the tasks posted before it. Any thread may call this."""
        self._posted.append(task)
        self._wake()

    def post_delayed(self, task: Task, delay_ms: float) -> object:
        """Run `task` once, `delay_ms` milliseconds from now. Any thread may call this.

        Returns:
            A token for `cancel`.
        """
        delayed = _DelayedTask(task, time.monotonic_ns() + int(delay_ms * 1e6))
        self._new_delayed.append(delayed)
        if self._waits:
            self._wake()
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

        If several descriptors are ready, the callbacks of `urgent` ones run first.
        """
        events = 0
        if on_readable is not None:
            events |= EPOLLIN
        if on_writable is not None:
            events |= EPOLLOUT
        if events == 0:
            self.unwatch(fd)
            return
        watch = _Watch(on_readable, on_writable, urgent=urgent)
        # The watch is removed first. So none remains if modify() fails, because the program has
        # closed the descriptor.
        known = self._watches.pop(fd, None) is not None
        poller = self._epoll or self._open()
        change = poller.modify if known else poller.register
        change(fd, events)
        self._watches[fd] = watch

    def unwatch(self, fd: int) -> None:
        """Stop watching `fd`. No effect if it isn't watched."""
        if self._watches.pop(fd, None) is not None and self._epoll is not None:
            try:
                self._epoll.unregister(fd)
            except OSError:
                pass  # The descriptor is closed already.

    def run(self) -> None:
        """Run until `quit`."""
        while not self._quit:
            self._round(None)
        self._quit = False

    def run_until(self, predicate: Callable[[], bool], timeout_ms: float | None = None) -> bool:
        """Run until `predicate()` is true, which is checked after every round.

        Args:
            predicate: Must not block.
            timeout_ms: The limit in milliseconds; None: no limit.

        Returns:
            The last value of the predicate: False after a time-out or `quit`.
        """
        deadline = None if timeout_ms is None else time.monotonic_ns() + int(timeout_ms * 1e6)
        while not (done := predicate()) and not self._quit:
            if deadline is not None and time.monotonic_ns() >= deadline:
                break
            self._round(deadline)
        self._quit = False
        return done

    def quit(self) -> None:
        """End `run`, or the next `run`, after its current round. Any thread may call this."""
        self._quit = True
        self._wake()

    def close(self) -> None:
        """Close all descriptors; nothing can be watched or run afterwards."""
        if self._epoll is not None:
            self._epoll.close()
            os.close(self._wake_fd)

    def _open(self) -> epoll:
        """Wait by `epoll` from now on."""
        from select import epoll

        self._epoll = epoll()
        wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(wake_fd, EPOLLIN)
        self._wake_fd = wake_fd
        return self._epoll

    def _round(self, deadline_ns: int | None) -> None:
        # A round begins with the wait: when it ends, all tasks that were due in it have run.
        self._waits = True
        happened = self._wait(self._timeout_s(deadline_ns))
        self._waits = False
        if happened:
            self._react(happened)
        if self._posted:
            self._run_posted()
        self._run_due()

    def _react(self, happened: list[tuple[int, int]]) -> None:
        ready: dict[int, tuple[_Watch, int]] = {}
        for fd, events in happened:
            watch = self._watches.get(fd)
            if fd == self._wake_fd:
                self._clear_wake()
            elif watch is None:
                continue  # An urgent callback has ended the watch.
            elif watch.urgent:
                self._dispatch(fd, watch, events)
            else:
                ready[fd] = watch, events
        if ready:
            self._serve(ready)

    def _wait(self, timeout_s: float | None) -> list[tuple[int, int]]:
        """Wait until something happens; return the descriptors that are ready, and their events."""
        if self._epoll is not None:
            return self._epoll.poll(timeout_s)
        self._woken.acquire(True, -1 if timeout_s is None else timeout_s)
        return []

    def _serve(self, ready: dict[int, tuple[_Watch, int]]) -> None:
        if len(ready) == 1:
            self._unserved = []  # All descriptors are served in this round.
            fd, (watch, events) = ready.popitem()
            self._dispatch(fd, watch, events)
            return
        end = time.monotonic_ns() + SLICE_NS
        turns = list(ready)
        if self._unserved:
            turns = list(dict.fromkeys(fd for fd in [*self._unserved, *turns] if fd in ready))
            self._unserved = []
        for served, fd in enumerate(turns, 1):
            self._dispatch(fd, *ready[fd])
            if time.monotonic_ns() >= end:
                self._unserved = turns[served:]
                return

    def _run_posted(self) -> None:
        end = time.monotonic_ns() + SLICE_NS
        for _ in range(len(self._posted)):
            self._posted.popleft()()
            if time.monotonic_ns() >= end:
                return

    def _run_due(self) -> None:
        if self._new_delayed:
            self._adopt_delayed()
        if not self._delayed:
            return
        now = time.monotonic_ns()
        while self._delayed and self._delayed[-1][0] <= now:
            task = self._delayed.pop()[2].task
            if task is not None:
                task()

    def _adopt_delayed(self) -> None:
        # Only the runner's thread uses the list; other threads append to `_new_delayed`.
        while self._new_delayed:
            delayed = self._new_delayed.popleft()
            self._delayed_count += 1
            self._delayed.append((delayed.due_ns, self._delayed_count, delayed))
        self._delayed.sort(reverse=True)

    def _timeout_s(self, deadline_ns: int | None) -> float | None:
        if self._new_delayed:
            self._adopt_delayed()
        if self._posted or self._quit:
            return 0
        while self._delayed and self._delayed[-1][2].task is None:
            self._delayed.pop()
        due = self._delayed[-1][0] if self._delayed else deadline_ns
        if due is None:
            return None
        if deadline_ns is not None:
            due = min(due, deadline_ns)
        return min(max(0, due - time.monotonic_ns()) / 1e9, MAX_SLEEP_S)

    def _dispatch(self, fd: int, watch: _Watch, events: int) -> None:
        # An earlier callback of this round may have ended or replaced the watch. Bits other than
        # EPOLLIN and EPOLLOUT report errors of the descriptor; an error runs both callbacks.
        watches = self._watches
        if events & ~EPOLLOUT and watch.on_readable and watches.get(fd) is watch:
            watch.on_readable()
        if events & ~EPOLLIN and watch.on_writable and watches.get(fd) is watch:
            watch.on_writable()

    def _wake(self) -> None:
        if not self._waits:
            return
        # Another thread may watch its first descriptor meanwhile: it then looks for tasks once more
        # before it waits.
        try:
            if self._wake_fd < 0:
                self._woken.release()
            else:
                os.eventfd_write(self._wake_fd, 1)
        except (RuntimeError, BlockingIOError):
            pass  # The lock is free, or the counter at its maximum: the runner wakes up anyway.

    def _clear_wake(self) -> None:
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            pass
