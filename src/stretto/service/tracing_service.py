"""The tracing service: connected producers, consumers and relays, data sources, sessions.

The service is a state machine without its own sockets, threads, clock or random source: the
caller provides them, so that it runs inside a program, in a daemon and in a test. All methods
are called on the task runner's thread; only native code processes trace data on other threads.
"""

from __future__ import annotations

import os

from stretto.base.errors import SessionError
from stretto.base.ids import MAX_PRODUCER_ID
from stretto.ports.data_source_descriptor import DescriptorHeader
from stretto.service.endpoints.consumer_endpoint import ConsumerEndpoint
from stretto.service.endpoints.producer_endpoint import ProducerEndpoint
from stretto.service.endpoints.shm_geometry import DEFAULT_PAGE_SIZE, DEFAULT_SHM_SIZE
from stretto.service.id_allocator import IdAllocator
from stretto.service.limits import (
    FILE_BYTES_PER_STEP,
    MAX_DATA_SOURCES_PER_PRODUCER,
)
from stretto.service.output.file_threads import FileThreads
from stretto.service.priority_boost import PriorityBoosts
from stretto.service.service_context import ServiceContext
from stretto.service.session import triggers
from stretto.service.session.data_source import RegisteredDataSource
from stretto.service.session.data_source_registry import DataSourceRegistry
from stretto.service.session.requested_data_sources import RequestedDataSources
from stretto.service.session.session_registry import SessionRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stretto.base.clock import Clock
    from stretto.base.errors import StrettoError
    from stretto.base.task_runner import TaskRunner
    from stretto.ports.endpoints import Consumer, OutOfProcessProducer, Producer
    from stretto.ports.producer_identity import ProducerIdentity
    from stretto.protos.config import TraceConfig
    from stretto.service.endpoints.relay_endpoint import RelayEndpoint
    from stretto.service.output.trace_stats import ServiceCounts
    from stretto.service.priority_boost import Scheduler
    from stretto.service.session.requested_data_sources import RequestedDataSource
    from stretto.service.session.service_tracing_session import ServiceTracingSession

MAX_MEMORY_FAILURES = 1000
MAX_UNKNOWN_TRIGGERS = 100
SHOWN_NAME = 100
"""Characters of a peer's name in a message."""


class TracingService:
    """Registry of producers, data sources, buffers and sessions.

    Args:
        task_runner: Runs all tasks of the service.
        clock: Reads the trace clocks.
        random_bytes: Random source for trace uuids and the `skip_probability` of triggers.
        version: Version string of the service in a trace.
        default_shm_size: Size in bytes of a producer's shared memory, if it doesn't request one.
        default_page_size: Size in bytes of its pages, if it doesn't request one.
        file_step_bytes: Bytes that a session with a file reads in one task.
        uid: User id of the service: `trusted_uid` of its own packets.
        machine_name: Name of this machine, for machine filters of a config.
        extension_descriptors: (file name, FileDescriptorSet, gzipped or not) of extensions
            to TracePacket, written into every trace.
        scheduler: Scheduler that `priority_boost` changes; by default the kernel's.
        pipe_patience_ms: Time in ms after which a session ends if the reader of its pipe reads
            nothing. None for no limit.
        file_threads: The threads that write the sessions' files.
        waits_for_disk: If the disk is slower than a session, block the service until the disk
            catches up, so that nothing is lost: for a service with a single session.
        on_error: Called with errors that no consumer can receive.
        adopt_writers: When a producer disconnects, also scrape its unregistered writers, if it may
            write into one buffer only. Perfetto's service doesn't.
    """

    def __init__(
        self,
        task_runner: TaskRunner,
        clock: Clock,
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
        version: str = "Stretto",
        default_shm_size: int = DEFAULT_SHM_SIZE,
        default_page_size: int = DEFAULT_PAGE_SIZE,
        file_step_bytes: int = FILE_BYTES_PER_STEP,
        uid: int | None = None,
        machine_name: str = "",
        extension_descriptors: Sequence[tuple[str, bytes]] = (),
        scheduler: Scheduler | None = None,
        adopt_writers: bool = False,
        pipe_patience_ms: float | None = None,
        file_threads: FileThreads | None = None,
        waits_for_disk: bool = False,
        on_error: Callable[[StrettoError], object] = lambda _: None,
    ) -> None:
        self.context = ServiceContext(
            task_runner,
            clock,
            random_bytes=random_bytes,
            version=version,
            uid=os.getuid() if uid is None else uid,
            machine_name=machine_name,
            default_geometry=(default_shm_size, default_page_size),
            file_threads=file_threads or FileThreads(),
            file_step_bytes=file_step_bytes,
            pipe_patience_ms=pipe_patience_ms,
            waits_for_disk=waits_for_disk,
            extension_descriptors=extension_descriptors,
        )
        self.buffers = self.context.buffers
        self.file_threads = self.context.file_threads
        self.producers: dict[int, ProducerEndpoint] = {}
        self.producers_seen = 0
        self.data_sources = DataSourceRegistry()
        self.registry = SessionRegistry(
            self.context,
            PriorityBoosts(scheduler),
            producers=self.producers.values,
            count_producers=self._count_producers,
            on_error=on_error,
        )
        self._on_error = on_error
        self.sessions = self.registry.by_id
        self.memory_failures: dict[int, str] = {}
        """Why producers have no shared memory: reasons by pid, at most a thousand."""
        self.trigger_history = triggers.TriggerHistory()
        self._unknown_triggers: set[str] = set()
        self._adopts_writers = adopt_writers
        self._producer_ids = IdAllocator(MAX_PRODUCER_ID)
        self._chunks_discarded = 0  # of producers that have disconnected
        self._patches_discarded = 0

    def connect_producer(
        self,
        producer: Producer | OutOfProcessProducer,
        identity: ProducerIdentity,
        *,
        shm_fd: int = -1,
    ) -> ProducerEndpoint:
        """Connect a producer.

        Args:
            producer: Receives the callbacks; an OutOfProcessProducer unless `identity.in_process`.
            identity: The producer's process and machine, and the requested memory.
            shm_fd: Memory that the producer offers, with pages of `identity.page_size_hint`; owned
                by the caller. `producer_provided_shm` of the endpoint is True if this memory is
                used.

        Raises:
            SessionError: 65535 producers are connected, or the service is locked down.
        """
        if not self._admits(identity):
            raise SessionError(
                "The service is locked down: a config with lockdown_mode LOCKDOWN_CLEAR opens it."
            )
        producer_id = self._producer_ids.allocate()
        if not producer_id:
            raise SessionError(f"{MAX_PRODUCER_ID} producers are connected, which is the most.")
        endpoint = ProducerEndpoint(self, producer, producer_id, identity)
        if shm_fd >= 0:
            endpoint.offer_shared_memory(shm_fd)
        if identity.in_process and identity.machine_id:
            self.context.packets.adopt_machine(identity.machine_id)
        self.producers[producer_id] = endpoint
        self.producers_seen += 1
        return endpoint

    def _admits(self, identity: ProducerIdentity) -> bool:
        """Return whether a producer may connect. In a lockdown only the service's own user may.

        In a lockdown, remote producers may not connect: their user id isn't verified.
        """
        return not self.registry.lockdown or (
            identity.uid == self.context.uid and not identity.is_remote
        )

    def note_lack_of_memory(self, pid: int, reason: str) -> None:
        """Store why a producer's memory can't be created, so that the producer joins no session."""
        if len(self.memory_failures) < MAX_MEMORY_FAILURES:
            self.memory_failures[pid] = reason

    def disconnect_producer(self, producer: ProducerEndpoint) -> None:
        """Scrape a producer's data, then remove it (called by its endpoint)."""
        if self._adopts_writers:
            producer.adopt_writers()
        for session in self.sessions.values():
            producer.scrape(session.buffers)
        for source in self.data_sources.of_producer(producer):
            self._remove(source)
        for session in list(self.sessions.values()):
            session.flushes.producer_gone(producer)
        stats = producer.core.stats()
        self._chunks_discarded += stats["chunks_discarded"]
        self._patches_discarded += stats["patches_discarded"]
        del self.producers[producer.producer_id]
        self._producer_ids.free(producer.producer_id)

    def _count_producers(self, counts: ServiceCounts) -> None:
        """Fill in the counters of producers and data sources."""
        counts.producers_connected = len(self.producers)
        counts.producers_seen = self.producers_seen
        counts.data_sources_registered = len(self.data_sources)
        counts.instances_seen = self.context.instances_seen
        counts.chunks_discarded = self._chunks_discarded
        counts.patches_discarded = self._patches_discarded
        for producer in self.producers.values():
            stats = producer.core.stats()
            counts.chunks_discarded += stats["chunks_discarded"]
            counts.patches_discarded += stats["patches_discarded"]

    def activate_triggers(self, producer: ProducerEndpoint, names: Sequence[str]) -> None:
        """Activate triggers in the sessions whose configs contain them."""
        now_ns = self.context.clock.boottime_ns()
        for name in triggers.names_once(names):
            count = self.trigger_history.count(name, now_ns)
            taken = [
                self._offer_trigger(session, producer, name, count)
                for session in list(self.sessions.values())
            ]
            if any(taken):
                self.trigger_history.add(name, now_ns)
            self._report_unknown_trigger(producer, name)

    def _report_unknown_trigger(self, producer: ProducerEndpoint, name: str) -> None:
        """Report a trigger that is in no session's config, once for each name."""
        shown, sender = name[:SHOWN_NAME], producer.name[:SHOWN_NAME]
        reported = self._unknown_triggers
        if shown in reported or len(reported) >= MAX_UNKNOWN_TRIGGERS:
            return
        if not any(session.triggers.configured(name) for session in self.sessions.values()):
            reported.add(shown)
            self._on_error(
                SessionError(f"no session waits for the trigger {shown!r} of {sender!r}")
            )

    def _offer_trigger(
        self, session: ServiceTracingSession, producer: ProducerEndpoint, name: str, count: int
    ) -> bool:
        trigger = session.triggers.configured(name)
        if trigger is None or not session.active:
            return False
        if not trigger.accepts(producer.name, count, self.context.random):
            return False
        now_ns = self.context.clock.boottime_ns()
        session.on_trigger(
            triggers.ReceivedTrigger(
                name, producer.name, producer.identity.uid, now_ns, trigger.stop_delay_ms
            )
        )
        return True

    def register_data_source(self, producer: ProducerEndpoint, descriptor: bytes) -> None:
        """Register a data source, and set it up in the sessions that request it.

        Raises:
            DecodeError: The descriptor is malformed.
        """
        source = RegisteredDataSource(producer, descriptor)
        own = self.data_sources.count_of(producer)
        if own >= MAX_DATA_SOURCES_PER_PRODUCER:
            self._refuse_data_source(producer, source.name)
            return
        if not source.name:
            return
        self.data_sources.add(source)
        for session in self.sessions.values():
            if session.accepts_data_sources:
                for entry in session.requested.named(source.name):
                    self._set_up(session, source, entry)

    def _refuse_data_source(self, producer: ProducerEndpoint, name: str) -> None:
        """Report only a producer's first refused data source, because it may send thousands."""
        if not producer.has_refused_data_sources:
            producer.has_refused_data_sources = True
            self._on_error(
                SessionError(
                    f"producer {producer.identity.name!r} (pid {producer.identity.pid}) has more "
                    f"than {MAX_DATA_SOURCES_PER_PRODUCER} data sources: {name!r} and further ones "
                    "are not recorded. Let one data source write what several did."
                )
            )

    def update_data_source(self, producer: ProducerEndpoint, descriptor: bytes) -> None:
        """Replace a descriptor. No effect if it has no id, or if the data source is unknown.

        Raises:
            DecodeError: The descriptor is malformed.
        """
        header = DescriptorHeader(descriptor)
        for source in self.data_sources.of(producer, header.name):
            if header.id and source.header.id == header.id:
                source.update(descriptor, header)

    def unregister_data_source(self, producer: ProducerEndpoint, name: str) -> None:
        """Unregister a producer's data sources with this name; their instances end."""
        for source in self.data_sources.of(producer, name):
            self._remove(source)

    def _remove(self, source: RegisteredDataSource) -> None:
        self.data_sources.remove(source)
        for session in list(self.sessions.values()):
            session.remove_data_source(source)

    def _set_up(
        self,
        session: ServiceTracingSession,
        source: RegisteredDataSource,
        entry: RequestedDataSource,
    ) -> None:
        if self._admits(source.producer.identity) and entry.matches(source):
            session.instances.add(source, entry)

    def connect_consumer(self, consumer: Consumer, uid: int) -> ConsumerEndpoint:
        """Connect a consumer; the caller has checked its permission."""
        return ConsumerEndpoint(self, consumer, uid)

    def set_up_session(self, session: ServiceTracingSession) -> None:
        """Set up every data source that the session requests, in the order of its config."""
        self.registry.on_session_state(session.session_id)
        for entry in session.requested.entries:
            for source in self.data_sources.named(entry.config.name):
                self._set_up(session, source, entry)

    def change_filters(self, session: ServiceTracingSession, config: TraceConfig) -> None:
        """Replace the producer filters of a session by those of a new config.

        If a filter now matches further producers, their data sources join the session. The rest of
        the new config is ignored.

        Raises:
            ConfigError: A filter is invalid; nothing was changed.
        """
        for entry in session.requested.take_filters_of(RequestedDataSources(config)):
            for source in self.data_sources.named(entry.config.name):
                if not session.instances.has(source.producer, source.name):
                    self._set_up(session, source, entry)

    def encoded_state(self, uid: int, *, sessions_only: bool) -> bytes:
        """Return the encoded TracingServiceState that a consumer of user `uid` may see."""
        # The schema of traces takes 2 ms to import, and most sessions don't need it.
        from stretto.service.service_state import service_state

        return service_state(
            self.context.version,
            self.registry.all(),
            self.producers.values(),
            self.data_sources,
            uid,
            sessions_only=sessions_only,
        )

    def snapshot(self, session_id: int) -> Iterator[bytes]:
        """Copy the data of a session, which continues unchanged.

        Flush the session before, to include uncommitted data of producers.

        Args:
            session_id: Id of the session (`ConsumerEndpoint.session_id`).

        Returns:
            The bytes of a complete trace, in pieces. The copy is made immediately, and
            freed when the iterator ends or is closed.

        Raises:
            SessionError: There is no such session, or not enough memory for the copy.
        """
        session = self.sessions.get(session_id)
        if session is None:
            raise SessionError(f"There is no session {session_id}: it has ended, or never existed.")
        from stretto.service.output.snapshot import take_snapshot

        return take_snapshot(session, self.buffers)

    def connect_relay(self, machine_id: int) -> RelayEndpoint:
        """Connect the relay of another machine."""
        from stretto.service.endpoints.relay_endpoint import RelayEndpoint

        relays = self.context.relays
        relay = RelayEndpoint(self.context.clock, machine_id, lambda gone: relays.pop(gone, None))
        relays[relay] = None
        return relay
