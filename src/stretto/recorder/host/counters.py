"""The recorder's own producer: memory, CPU and switches of the GIL of the recorded processes.

Each sampled process is watched by a pidfd, so that the last sample is taken when the process ends.
"""

from __future__ import annotations

import os

from stretto.base import proc_files
from stretto.client.producer_connection import ProducerConnection
from stretto.probes.process_counters import ProcessCounters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.profilers.sampling.gil_switches import GilSwitches

RECORDER_SHM_SIZE = 256 << 10
RECORDER_PAGE_SIZE = 4 << 10
"""Shared memory of the recorder's own producer, in bytes."""


GIL_SWITCHES = "GIL hand-overs"
OWN_THREADS = b"stretto-"
"""What the names of Stretto's own threads in a recorded process begin with."""


def _has_several_threads(pid: int) -> bool:
    """Whether a process has more than one thread, without those of Stretto."""
    names = proc_files.thread_names(pid)
    return sum(not name.startswith(OWN_THREADS) for name in names) > 1


class RecordedCounters(ProcessCounters):
    """The counters of processes that run Python."""

    name = ProcessCounters.name

    def __init__(self) -> None:
        super().__init__()
        self._gil: GilSwitches | None = None
        self._threaded: set[int] = set()
        """Processes that have had several threads at a sample."""

    def counts(self, pid: int) -> dict[str, int]:
        if pid not in self._threaded:
            if not _has_several_threads(pid):
                return {}
            self._threaded.add(pid)
        if self._gil is None:
            # Most recordings don't need the module: to find the count takes 50 ms of CPU time.
            from stretto.profilers.sampling.gil_switches import GilSwitches

            self._gil = GilSwitches()
        count = self._gil.count(pid)
        return {} if count is None else {GIL_SWITCHES: count}


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
        add_producer(ProducerConnection([RecordedCounters]))

    def sample(self, pids: Iterable[int]) -> None:
        """Sample these processes, and all earlier sampled processes that are still running."""
        wanted = set(pids)
        for source in RecordedCounters.instances():
            source.sample(wanted | source.living)

    def follow(self, pid: int) -> None:
        """Sample a process now and when it ends."""
        for source in RecordedCounters.instances():
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
        for source in RecordedCounters.instances():
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
