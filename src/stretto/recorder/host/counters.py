"""The recorder's own producer: memory and CPU of the recorded processes.

A process that is sampled is watched (pidfd), so that its counters end when it ends.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from stretto.client.producer_connection import ProducerConnection
from stretto.probes.process_counters import ProcessCounters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.base.selector_task_runner import SelectorTaskRunner


class Counters:
    """Offers the data source to the service that records.

    Args:
        runner: notices ends of processes.
        offer: connects a producer to the service.
    """

    def __init__(
        self, runner: SelectorTaskRunner, offer: Callable[[ProducerConnection], object]
    ) -> None:
        self._runner = runner
        self._watched: dict[int, int] = {}  # pid: its descriptor
        offer(ProducerConnection([ProcessCounters]))

    def sample(self, pids: Iterable[int]) -> None:
        """Write how these processes, and all before that still live, are doing."""
        wanted = set(pids)
        for source in ProcessCounters.instances():
            source.sample(wanted | source.living)

    def follow(self, pid: int) -> None:
        """Sample a process now, and when it ends."""
        for source in ProcessCounters.instances():
            source.sample([pid])
        if pid in self._watched:
            return
        with suppress(OSError):  # it has ended, or there are too many: the next sample tells
            fd = os.pidfd_open(pid)
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
        """Write the last values, and watch nobody any more."""
        self.sample(())
        for pid in list(self._watched):
            self._unwatch(pid)
