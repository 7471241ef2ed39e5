"""The service's endpoint for one producer, in this process or behind a socket.

Rules: callbacks run as tasks, in order; after a disconnect only `on_disconnect` runs. The
shared memory is created when the first data source is set up, and freed when the producer
disconnects. Trace data is handled in the native core.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.base.errors import StrettoError, TransportError
from stretto.service.endpoints.shm_geometry import ABI_PAGE_SIZE, valid_geometry, wished_geometry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Protocol

    from stretto.ports.endpoints import OutOfProcessProducer, Producer
    from stretto.ports.producer_identity import ProducerIdentity
    from stretto.protos.config import DataSourceConfig, DataSourceDescriptor, TraceConfig
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.service_tracing_session import ServiceTracingSession
    from stretto.service.session.session_registry import SessionRegistry

    class ProducerService(Protocol):
        """The members of the service that a producer's endpoint uses."""

        context: ServiceContext
        registry: SessionRegistry

        def register_data_source(self, producer: ProducerEndpoint, descriptor: bytes) -> None: ...
        def update_data_source(self, producer: ProducerEndpoint, descriptor: bytes) -> None: ...
        def unregister_data_source(self, producer: ProducerEndpoint, name: str) -> None: ...
        def activate_triggers(self, producer: ProducerEndpoint, names: Sequence[str]) -> None: ...
        def disconnect_producer(self, producer: ProducerEndpoint) -> None: ...
        def note_lack_of_memory(self, pid: int, reason: str) -> None: ...


class ProducerEndpoint:
    """Implements `ports.endpoints.RemoteProducerEndpoint` for one producer."""

    def __init__(
        self,
        service: ProducerService,
        producer: Producer | OutOfProcessProducer,
        producer_id: int,
        identity: ProducerIdentity,
    ) -> None:
        self._service = service
        self._producer = producer
        self._arbiter: _native.Arbiter | None = None
        self._has_memory = False
        self._allowed: set[int] = set()
        self.producer_id = producer_id
        self.identity = identity
        self.name = identity.name
        here = service.context.machine_name
        self.machine_name = identity.machine_name if identity.machine_id else here
        self.producer_provided_shm = False
        self.core = _native.ProducerEndpointCore(service.context.buffers.table, producer_id)
        self.connected = True
        self.has_refused_data_sources = False
        self._post(producer.on_connect)

    # --- called by the producer

    def register_data_source(self, descriptor: DataSourceDescriptor) -> None:
        """Register a data source, and set it up in the sessions that request it."""
        self.register_encoded_data_source(descriptor.encode())

    def register_encoded_data_source(self, descriptor: bytes) -> None:
        """Register a data source by its encoded descriptor. Raises DecodeError."""
        if self.connected:
            self._service.register_data_source(self, descriptor)

    def update_data_source(self, descriptor: DataSourceDescriptor) -> None:
        """Replace the earlier descriptor that has the same name and the same id (not 0)."""
        self.update_encoded_data_source(descriptor.encode())

    def update_encoded_data_source(self, descriptor: bytes) -> None:
        """Update a data source by its encoded descriptor. Raises DecodeError."""
        if self.connected:
            self._service.update_data_source(self, descriptor)

    def unregister_data_source(self, name: str) -> None:
        """Unregister a data source; its instances end."""
        if self.connected:
            self._service.unregister_data_source(self, name)

    def register_trace_writer(self, writer_id: int, target_buffer: int) -> None:
        """Register the target buffer of a writer, so that its chunks can be scraped."""
        self.core.register_writer(writer_id, target_buffer)

    def unregister_trace_writer(self, writer_id: int) -> None:
        """Remove a writer that has ended."""
        self.core.unregister_writer(writer_id)

    def on_commit(self, flush_request_id: int) -> None:
        """Called after `core` has handled a commit; an id above 0 acknowledges a flush."""
        for session in self._sessions():
            if session.drain is not None:
                session.drain.make_room()
        if flush_request_id:
            self.notify_flush_complete(flush_request_id)

    def notify_flush_complete(self, request_id: int) -> None:
        """Acknowledge all flushes up to `request_id`."""
        for session in self._sessions():
            session.flushes.ack(self, request_id)

    def notify_data_source_started(self, instance_id: int) -> None:
        """Confirm the start of an instance (data sources with `will_notify_on_start`)."""
        for session in self._sessions():
            session.on_data_source_started(self, instance_id)

    def notify_data_source_stopped(self, instance_id: int) -> None:
        """Confirm the end of an instance whose data source has set `will_notify_on_stop`."""
        for session in self._sessions():
            session.on_data_source_stopped(self, instance_id)

    def activate_triggers(self, names: Sequence[str]) -> None:
        """Activate triggers in the sessions whose configs contain them."""
        if self.connected:
            self._service.activate_triggers(self, names)

    def sync(self, callback: Callable[[], None]) -> None:
        """Call back after all earlier requests have been handled."""
        self._post(callback)

    def disconnect(self) -> None:
        """Remove the producer; its complete packets stay in the buffers."""
        if not self.connected:
            return
        self._service.disconnect_producer(self)
        self.connected = False
        # The permissions are removed, because the producer's id may soon be reused.
        self.forbid_buffers(list(self._allowed))
        if self._arbiter is not None:
            self._arbiter.disable()
        self._service.context.task_runner.post(self._producer.on_disconnect)

    # --- called by the service

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self._post(lambda: self._producer.setup_data_source(instance_id, config))

    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self._post(lambda: self._producer.start_data_source(instance_id, config))

    def stop_data_source(self, instance_id: int) -> None:
        self._post(lambda: self._producer.stop_data_source(instance_id))

    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        self._post(lambda: self._producer.flush(request_id, instance_ids, flags))

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None:
        self._post(lambda: self._producer.clear_incremental_state(instance_ids))

    def ensure_shared_memory(self, config: TraceConfig) -> bool:
        """Create the shared memory unless it exists.

        Returns:
            False if no memory can be created; then the producer joins no session.
        """
        if self._has_memory:
            return True
        identity = self.identity
        wished = wished_geometry(config, self.name, identity.shm_size_hint, identity.page_size_hint)
        size, page_size = valid_geometry(*wished, *self._service.context.default_geometry)
        try:
            if identity.is_remote or self.producer_provided_shm:
                self._announce(size, page_size)
            elif identity.in_process:
                self._share_in_process(size, page_size)
            else:
                self._share_memfd(size, page_size)
        except (MemoryError, OSError, StrettoError) as error:
            self._service.note_lack_of_memory(identity.pid, str(error) or "out of memory")
            return False
        self._has_memory = True
        return True

    def offer_shared_memory(self, fd: int) -> None:
        """Use the memory that the producer provides, if it is valid.

        Otherwise the service creates the memory.

        Args:
            fd: A sealed memfd; owned by the caller.
        """
        from stretto.base.memory import checked_memfd_size

        try:
            size = checked_memfd_size(fd)
            page_size = self.identity.page_size_hint
            if valid_geometry(size, page_size) != (size, page_size):
                return
            self.core.attach_fd(fd, size, page_size)
        except (OSError, ValueError, TransportError):
            return
        self.producer_provided_shm = True

    def _announce(self, size: int, page_size: int) -> None:
        remote: OutOfProcessProducer = self._producer  # type: ignore[assignment]  # by contract
        self._post(lambda: remote.on_shared_memory(-1, size, page_size))

    def _share_in_process(self, size: int, page_size: int) -> None:
        arbiter = _native.Arbiter.in_process(self.core, size, page_size)
        self._arbiter = arbiter
        self._post(lambda: self._producer.on_tracing_setup(arbiter))

    def _share_memfd(self, size: int, page_size: int) -> None:
        fd, size, page_size = _make_memory(size, page_size)
        try:
            self.core.attach_fd(fd, size, page_size)
        except BaseException:
            os.close(fd)
            raise
        self._service.context.task_runner.post(lambda: self._hand_over(fd, size, page_size))

    def _hand_over(self, fd: int, size: int, page_size: int) -> None:
        try:
            if self.connected:
                remote: OutOfProcessProducer = self._producer  # type: ignore[assignment]  # by contract
                remote.on_shared_memory(fd, size, page_size)
        finally:
            os.close(fd)

    def _post(self, callback: Callable[[], object]) -> None:
        def run() -> None:
            if self.connected:
                callback()

        self._service.context.task_runner.post(run)

    def _sessions(self) -> list[ServiceTracingSession]:
        return self._service.registry.all() if self.connected else []

    def allow_buffer(self, buffer_id: int) -> None:
        """Allow the producer to write into a buffer."""
        self._allowed.add(buffer_id)
        self.introduce_to(buffer_id)
        self.core.allow_buffer(buffer_id, True)

    def introduce_to(self, buffer_id: int) -> None:
        """Set the producer's uid, pid and machine in a buffer that it may write into."""
        if buffer_id in self._allowed:
            identity = self.identity
            self._service.context.buffers.table.set_producer(
                buffer_id, self.producer_id, identity.uid, identity.pid, identity.machine_id
            )

    def forbid_buffers(self, buffer_ids: Iterable[int]) -> None:
        """Forbid the producer to write into buffers."""
        for buffer_id in self._allowed.intersection(buffer_ids):
            self._allowed.discard(buffer_id)
            self.core.allow_buffer(buffer_id, False)

    @property
    def scrapes_itself(self) -> bool:
        """Whether the producer sends its uncommitted chunks when it acknowledges a flush."""
        return self.identity.is_remote and self.identity.smb_scraping

    def adopt_writers(self) -> None:
        """Assign unregistered writers to the only allowed buffer, after a disconnect.

        A killed process may not have sent the registrations of its last threads.
        """
        if len(self._allowed) == 1:
            self.core.adopt_writers(next(iter(self._allowed)))

    def scrape(self, buffer_ids: Iterable[int]) -> None:
        """Copy uncommitted chunks of the producer into the given buffers that it may write to."""
        buffers = sorted(buffer_ids)
        if self.identity.smb_scraping and self._has_memory and self._allowed.intersection(buffers):
            self.core.scrape(buffers)


def _make_memory(size: int, page_size: int) -> tuple[int, int, int]:
    """Create memory of the requested size, or of the largest size that the file limit permits.

    Returns:
        (descriptor, size, page size), sizes in bytes.

    Raises:
        TransportError: No memory can be created.
    """
    from stretto.base.memory import create_sealed_memfd, memfd_size_limit

    try:
        return create_sealed_memfd(size), size, page_size
    except TransportError:
        smaller = memfd_size_limit(size) // ABI_PAGE_SIZE * ABI_PAGE_SIZE
        if not 0 < smaller < size:
            raise
    return create_sealed_memfd(smaller), smaller, ABI_PAGE_SIZE
