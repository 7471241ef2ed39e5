"""A producer that records the callbacks of the service; the test answers them."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any

from stretto import _native
from stretto.ports.producer_identity import ProducerIdentity
from stretto.protos.config import DataSourceDescriptor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.protos.config import DataSourceConfig
    from stretto.service.endpoints.producer_endpoint import ProducerEndpoint
    from stretto.service.tracing_service import TracingService


class MockProducer:
    """A producer in this process, connected to a service.

    Args:
        service: The service.
        name: Name of the producer.
        uid: User id of the producer.
        pid: Process id of the producer.
        in_process: If False, it receives a descriptor of the shared memory, and maps it.
        answers_flushes: Whether it commits and acknowledges each flush automatically.
        shm_fd: Memory that the producer offers; -1 for none.
        more: Further fields of the `ProducerIdentity`, by name: `machine_id`,
            `shm_emulation`, `page_size_hint`, ...

    Attributes:
        calls: Every callback, as a tuple (name, data source name or other identifier):
            ("setup", data source name), ("flush", request id), ...
        configs: The config of each instance that was set up, by data source name.
        instances: The id of each instance that was set up, by data source name.
        flushes: (request id, instance ids, flags) of each flush.
    """

    def __init__(
        self,
        service: TracingService,
        name: str = "mock_producer",
        *,
        uid: int = 42,
        pid: int = 1025,
        in_process: bool = True,
        answers_flushes: bool = True,
        shm_fd: int = -1,
        **more: Any,
    ) -> None:
        self.calls: list[tuple[str, object]] = []
        self.configs: dict[str, DataSourceConfig] = {}
        self.instances: dict[str, int] = {}
        self.flushes: list[tuple[int, list[int], int]] = []
        self.answers_flushes = answers_flushes
        self.arbiter: _native.Arbiter | None = None
        self.memory: mmap.mmap | None = None
        self.page_size = 0
        self._names: dict[int, str] = {}
        self._writers: list[_native.TraceWriter] = []
        self.endpoint: ProducerEndpoint = service.connect_producer(
            self,
            ProducerIdentity(name, uid=uid, pid=pid, in_process=in_process, **more),
            shm_fd=shm_fd,
        )

    def register(
        self,
        name: str,
        *,
        ack_start: bool = False,
        ack_stop: bool = False,
        clears_state: bool = False,
        no_flush: bool = False,
        ident: int = 0,
    ) -> None:
        """Register a data source.

        Args:
            name: Name of the data source.
            ack_start: Whether the data source confirms its start (`started`).
            ack_stop: Whether the data source confirms its end (`stopped`).
            clears_state: Whether the data source handles the clearing of incremental state.
            no_flush: Whether the data source is excluded from flushes.
            ident: Id of the data source, for updates.
        """
        descriptor = DataSourceDescriptor(name=name)
        for field, value in (
            ("will_notify_on_start", ack_start),
            ("will_notify_on_stop", ack_stop),
            ("handles_incremental_state_clear", clears_state),
            ("no_flush", no_flush),
            ("id", ident),
        ):
            if value:
                setattr(descriptor, field, value)
        self.endpoint.register_data_source(descriptor)

    def writer(self, data_source: str, policy: int = _native.DROP) -> _native.TraceWriter:
        """Return a trace writer for the buffer of a data source that was set up."""
        assert self.arbiter is not None, "set up a data source and run the task runner first"
        target = self.configs[data_source].target_buffer
        writer = _native.TraceWriter(self.arbiter, target, policy)
        self._writers.append(writer)
        return writer

    def started(self, data_source: str) -> None:
        """Confirm that a data source has started."""
        self.endpoint.notify_data_source_started(self.instances[data_source])

    def stopped(self, data_source: str) -> None:
        """Confirm that a data source has stopped."""
        self.endpoint.notify_data_source_stopped(self.instances[data_source])

    def answer_flush(self, request_id: int) -> None:
        """Commit all data, and acknowledge all flushes up to `request_id`."""
        for writer in self._writers:
            writer.flush()
        if self.arbiter is not None:
            self.arbiter.flush()
        self.endpoint.notify_flush_complete(request_id)

    def disconnect(self) -> None:
        """Disconnect from the service."""
        self.endpoint.disconnect()

    # --- methods of ports.endpoints.OutOfProcessProducer

    def on_connect(self) -> None:
        self.calls.append(("connect", ""))

    def on_disconnect(self) -> None:
        self.calls.append(("disconnect", ""))

    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        self.arbiter = arbiter
        self.calls.append(("tracing setup", arbiter.size))

    def on_shared_memory(self, fd: int, size_bytes: int, page_size_bytes: int) -> None:
        if fd >= 0:  # Without a descriptor, the producer has provided the memory.
            copy = os.dup(fd)
            try:
                self.memory = mmap.mmap(copy, size_bytes)
            finally:
                os.close(copy)
        self.page_size = page_size_bytes
        self.calls.append(("tracing setup", size_bytes))

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self.configs[config.name] = config
        self.instances[config.name] = instance_id
        self._names[instance_id] = config.name
        self.calls.append(("setup", config.name))

    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self._names.setdefault(instance_id, config.name)  # A start may arrive without a setup.
        self.calls.append(("start", config.name))

    def stop_data_source(self, instance_id: int) -> None:
        self.calls.append(("stop", self._names[instance_id]))

    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        self.calls.append(("flush", request_id))
        self.flushes.append((request_id, list(instance_ids), flags))
        if self.answers_flushes:
            self.answer_flush(request_id)

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None:
        self.calls.append(("clear", [self._names[ident] for ident in instance_ids]))
