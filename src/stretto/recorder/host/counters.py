"""The recorder's own producer: memory and CPU of the recorded processes.

Each sampled process is watched by a pidfd, so that the last sample is taken when the process ends.
"""

from __future__ import annotations

import os

from stretto.client.producer_connection import ProducerConnection
from stretto.probes.process_counters import ProcessCounters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.base.selector_task_runner import SelectorTaskRunner

RECORDER_SHM_SIZE = 256 << 10
RECORDER_PAGE_SIZE = 4 << 10
"""Shared memory of the recorder's own producer, in bytes."""


class Counters:
    """Samples processes into the data source `linux.process_stats`.

    Args:
        runner: the task runner that watches the processes.
        add_producer: connects a producer to the service.
    """

    def __init__(
        self, runner: SelectorTaskRunner, add_producer: Callable[[ProducerConnection], object]
    ) -> None:
        self._runner = runner
        self._watched: dict[int, int] = {}  # The pidfd of each watched process, by its pid.
        add_producer(ProducerConnection([ProcessCounters]))

    def sample(self, pids: Iterable[int]) -> None:
        """Sample these processes, and all earlier sampled processes that are still running."""
        wanted = set(pids)
        for source in ProcessCounters.instances():
            source.sample(wanted | source.living)

    def follow(self, pid: int) -> None:
        """Sample a process now and when it ends."""
        for source in ProcessCounters.instances():
            source.sample([pid])
        if pid in self._watched:
            return
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return  # The process has ended, or no descriptor is free: `sample` handles both cases.
        self._watched[pid] = fd
        self._runner.watch(fd, lambda: self._end(pid))

    def _end(self, pid: int) -> None:
        self._unwatch(pid)
        for source in ProcessCounters.instances():
            source.sample([pid])

    def _unwatch(self, pid: int) -> None:
        fd = self._watched.pop(pid)
        self._runner.unwatch(fd)
        os.close(fd)

    def close(self) -> None:
        """Take the last samples, and stop watching all processes."""
        self.sample(())
        for pid in list(self._watched):
            self._unwatch(pid)
