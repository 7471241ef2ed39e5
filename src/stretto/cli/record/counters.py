"""The recorder's own producer: memory and CPU of the recorded processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.client.producer_connection import ProducerConnection
from stretto.probes.process_counters import ProcessCounters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.service.tracing_service import TracingService

SHM_SIZE = 256 << 10
PAGE_SIZE = 4 << 10


class Counters:
    """Offers the data source to the recorder's service, on the service's own thread."""

    def __init__(self, service: TracingService) -> None:
        connection = ProducerConnection([ProcessCounters])
        endpoint = service.connect_producer(
            connection,
            uid=os.getuid(),
            pid=os.getpid(),
            name="stretto record",
            in_process=True,
            page_size_hint=PAGE_SIZE,
            shm_size_hint=SHM_SIZE,
        )
        connection.attach(endpoint)

    def sample(self, pids: Iterable[int]) -> None:
        """Write how these processes are doing."""
        for source in ProcessCounters.instances():
            source.sample(pids)
