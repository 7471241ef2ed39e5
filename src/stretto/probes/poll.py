"""Periodic tasks, aligned to the trace clock, so that the samples of several sources coincide."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stretto.probes.budget import Budget
    from stretto.probes.machine import Machine

NS_PER_MS = 1_000_000


class Poll:
    """Samples several things, each with a period of its own.

    The first sample, of all things, is taken at once. The next samples are taken at multiples of
    the periods, so the first two may be closer together. Samples that a busy machine has missed
    are left out.

    Args:
        machine: Has the clock and the task runner.
        periods_ms: The period of each thing.
        sample: Called with the things that are due; there is at least one.
        budget: Postpones samples that use too much CPU time; None for no limit.
        on_slow: Called when the budget begins to postpone samples.
    """

    def __init__(
        self,
        machine: Machine,
        periods_ms: Mapping[str, int],
        sample: Callable[[Iterable[str]], object],
        budget: Budget | None = None,
        on_slow: Callable[[], object] = lambda: None,
    ) -> None:
        self._machine = machine
        # Things with one period are always due together.
        self._names: dict[int, list[str]] = {}
        for name, period in periods_ms.items():
            self._names.setdefault(period * NS_PER_MS, []).append(name)
        self._due_ns = dict.fromkeys(self._names, 0)
        self._sample = sample
        self._budget = budget
        self._on_slow = on_slow
        self._is_slow = self._has_ended = False
        self._token: object = None
        if periods_ms:
            self._run()

    def stop(self) -> None:
        """Take no more samples."""
        self._has_ended = True
        self._machine.runner.cancel(self._token)

    def _run(self) -> None:
        now = self._machine.now_ns()
        due: list[str] = []
        for period, time in self._due_ns.items():
            if time <= now:
                due += self._names[period]
                self._due_ns[period] = (now // period + 1) * period
        # The next run is planned first: an exception in `sample` must not end the poll.
        self._plan(now)
        if due:
            cpu = self._machine.cpu_ns()
            self._sample(due)
            if self._budget is not None and not self._has_ended:
                wait_ns = self._budget.spend(now, self._machine.cpu_ns() - cpu)
                if wait_ns or self._is_slow:
                    self._pay(now, wait_ns)

    def _plan(self, now: int) -> None:
        delay_ns = min(self._due_ns.values()) - now
        self._token = self._machine.runner.post_delayed(self._run, delay_ns / NS_PER_MS)

    def _pay(self, now: int, wait_ns: int) -> None:
        """Postpone what is due before the budget allows a sample."""
        was_slow, self._is_slow = self._is_slow, wait_ns > 0
        if not wait_ns:
            return
        for period, time in self._due_ns.items():
            first = -(-(now + wait_ns) // period) * period
            self._due_ns[period] = max(time, first)
        self._machine.runner.cancel(self._token)
        self._plan(now)
        if not was_slow:
            self._on_slow()
