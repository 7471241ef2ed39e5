"""The recorder's own producer: memory and CPU of the recorded processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.client.producer_connection import ProducerConnection
from stretto.probes.process_counters import ProcessCounters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Counters:
    """Offers the data source to the service that records.

    Args:
        offer: connects a producer there.
    """

    def __init__(self, offer: Callable[[ProducerConnection], object]) -> None:
        offer(ProducerConnection([ProcessCounters]))

    def sample(self, pids: Iterable[int]) -> None:
        """Write how these processes are doing."""
        for source in ProcessCounters.instances():
            source.sample(pids)
