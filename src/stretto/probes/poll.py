"""Periodic tasks, aligned to the trace clock, so that the samples of several sources coincide."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    """

    def __init__(
        self,
        machine: Machine,
        periods_ms: Mapping[str, int],
        sample: Callable[[Iterable[str]], object],
    ) -> None:
        self._machine = machine
        self._periods_ns = {name: period * NS_PER_MS for name, period in periods_ms.items()}
        self._due_ns = dict.fromkeys(periods_ms, 0)
        self._sample = sample
        self._token: object = None
        if periods_ms:
            self._run()

    def stop(self) -> None:
        """Take no more samples."""
        self._machine.runner.cancel(self._token)

    def _run(self) -> None:
        now = self._machine.now_ns()
        due = [name for name, time in self._due_ns.items() if time <= now]
        for name in due:
            period = self._periods_ns[name]
            self._due_ns[name] = (now // period + 1) * period
        # The next run is planned first: an exception in `sample` must not end the poll.
        delay_ns = min(self._due_ns.values()) - now
        self._token = self._machine.runner.post_delayed(self._run, delay_ns / NS_PER_MS)
        if due:
            self._sample(due)
