"""A producer of the recorder's own, with one data source that follows the recorded processes."""

from __future__ import annotations

from stretto.client.producer_connection import ProducerConnection
from stretto.probes.machine import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.probes.probe import Probe


class ProgramProbe:
    """Records processes by a data source.

    Args:
        source: the data source; its method `follow` takes the id of a process.
        runner: runs the periodic reads.
        add_producer: connects a producer to the service.
        tell: shows why nothing is recorded.
    """

    def __init__(
        self,
        source: type[Probe],
        runner: SelectorTaskRunner,
        add_producer: Callable[[ProducerConnection], object],
        tell: Callable[[str], object],
    ) -> None:
        self._source: Any = source
        source.machine = Machine(runner, lambda function: function(), tell=tell)
        add_producer(ProducerConnection([source]))

    def follow(self, pid: int) -> None:
        """Record the threads of a process, and those that it starts."""
        for instance in self._source.instances():
            instance.follow(pid)
