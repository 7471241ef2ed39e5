"""The tracing service: who is connected, what they offer, which sessions run.

It is one state machine without sockets, threads, time or randomness of its own: all come
from outside, so that it runs inside a program, in a daemon and under a test alike. Every
method is called on the task runner's thread; only trace data moves on other threads, in
native code.
"""

from __future__ import annotations

import os

from stretto.base.errors import SessionError
from stretto.base.ids import MAX_PRODUCER_ID
from stretto.ports.data_source_descriptor import DescriptorHeader
from stretto.service.endpoints.consumer_endpoint import ConsumerEndpoint
from stretto.service.endpoints.producer_endpoint import ProducerEndpoint
from stretto.service.endpoints.relay_endpoint import RelayEndpoint
from stretto.service.endpoints.shm_geometry import DEFAULT_PAGE_SIZE, DEFAULT_SHM_SIZE
from stretto.service.id_allocator import IdAllocator
from stretto.service.limits import (
    FILE_BYTES_PER_STEP,
    MAX_DATA_SOURCES_PER_PRODUCER,
)
from stretto.service.output.file_threads import FileThreads
from stretto.service.output.snapshot import take_snapshot
from stretto.service.priority_boost import PriorityBoosts
from stretto.service.service_context import ServiceContext
from stretto.service.service_state import service_state
from stretto.service.session import triggers
from stretto.service.session.data_source import RegisteredDataSource
from stretto.service.session.data_source_registry import DataSourceRegistry
from stretto.service.session.session_registry import SessionRegistry
from stretto.service.session.wanted_data_sources import WantedDataSources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stretto.base.clock import Clock
    from stretto.base.errors import StrettoError
    from stretto.base.task_runner import TaskRunner
    from stretto.ports.endpoints import Consumer, OutOfProcessProducer, Producer
    from stretto.ports.producer_identity import ProducerIdentity
    from stretto.protos.config import TraceConfig
    from stretto.service.output.trace_stats import ServiceCounts
    from stretto.service.priority_boost import Scheduler
    from stretto.service.session.tracing_session import TracingSession
    from stretto.service.session.wanted_data_sources import WantedDataSource

MAX_WITHOUT_MEMORY = 1000


class TracingService:
    """Registry of producers, data sources, buffers and sessions.

    Args:
        task_runner: Runs everything that happens later.
        clock: The time.
        random_bytes: Where trace uuids come from, and the dice of triggers.
        version: How the service calls itself in a trace.
        default_shm_size: Bytes of shared memory of a producer that asks for none.
        default_page_size: Bytes of its pages.
        file_step_bytes: What a session that writes a file reads at a time; other tasks wait
            meanwhile.
        uid: Whom the service's own packets name as their writer.
        machine_name: What this machine is called by others, for filters of a config.
        extension_descriptors: (file name, FileDescriptorSet, by gzip or not) of extensions
            to TracePacket that every trace shall describe.
        scheduler: What `priority_boost` acts on; by default the kernel's.
        pipe_patience_ms: How long the reader of a pipe that a session is written to may read
            nothing; then that session ends. None: as long as it likes.
        file_threads: Run what writes the sessions' files.
        waits_for_disk: A session that writes a file faster than the disk takes it makes
            everybody wait, and loses nothing: for a service that has no other session.
        on_error: Told what nobody else can be told.
        adopt_writers: Scrape what dead producers' writers wrote that never registered, too:
            for a producer that may write to one buffer only. Perfetto's service doesn't.
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
        self.sessions = self.registry.by_id
        self.without_memory: dict[int, str] = {}
        """Why producers got no shared memory, by pid: the first thousand of them."""
        self.trigger_history = triggers.TriggerHistory()
        self._adopts_writers = adopt_writers
        self._producer_ids = IdAllocator(MAX_PRODUCER_ID)
        self._chunks_discarded = 0  # of producers that have disconnected
        self._patches_discarded = 0

    # Producers

    def connect_producer(
        self,
        producer: Producer | OutOfProcessProducer,
        identity: ProducerIdentity,
        *,
        shm_fd: int = -1,
    ) -> ProducerEndpoint:
        """Connect a producer.

        Args:
            producer: Gets the callbacks; a OutOfProcessProducer unless `identity.in_process`.
            identity: Its process, its machine and the memory it asks for.
            shm_fd: Memory that it offers, with pages of `identity.page_size_hint`; stays the
                caller's. `producer_provided_shm` of the endpoint tells whether it was accepted.

        Raises:
            SessionError: 65535 producers are connected, or only the service's own user's
                may be.
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
        """Whether a lockdown, if there is one, leaves this producer in.

        The user id of a remote producer is only its own claim.
        """
        return not self.registry.lockdown or (
            identity.uid == self.context.uid and not identity.is_remote
        )

    def note_lack_of_memory(self, pid: int, reason: str) -> None:
        """A producer takes no part in a session: there is no memory for it."""
        if len(self.without_memory) < MAX_WITHOUT_MEMORY:
            self.without_memory[pid] = reason

    def disconnect_producer(self, producer: ProducerEndpoint) -> None:
        """Keep what the producer has written, then forget it (called by its endpoint)."""
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
        """Fill in what producers and their data sources have counted."""
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
        """Give every session those of the triggers that it waits for."""
        now_ns = self.context.clock.boottime_ns()
        for name in triggers.names_once(names):
            count = self.trigger_history.count(name, now_ns)
            taken = [
                self._offer_trigger(session, producer, name, count)
                for session in list(self.sessions.values())
            ]
            if any(taken):
                self.trigger_history.add(name, now_ns)

    def _offer_trigger(
        self, session: TracingSession, producer: ProducerEndpoint, name: str, count: int
    ) -> bool:
        wanted = session.triggers.wanted(name)
        if wanted is None or not session.active:
            return False
        if not wanted.accepts(producer.name, count, self.context.random):
            return False
        now_ns = self.context.clock.boottime_ns()
        session.on_trigger(
            triggers.ReceivedTrigger(
                name, producer.name, producer.identity.uid, now_ns, wanted.stop_delay_ms
            )
        )
        return True

    # Data sources

    def register_data_source(self, producer: ProducerEndpoint, descriptor: bytes) -> None:
        """Add what a producer offers, and set it up where a session wants it.

        Raises:
            DecodeError: The descriptor is malformed.
        """
        source = RegisteredDataSource(producer, descriptor)
        own = self.data_sources.count_of(producer)
        if not source.name or own >= MAX_DATA_SOURCES_PER_PRODUCER:
            return
        self.data_sources.add(source)
        for session in self.sessions.values():
            if session.accepts_data_sources:
                for entry in session.wanted.named(source.name):
                    self._set_up(session, source, entry)

    def update_data_source(self, producer: ProducerEndpoint, descriptor: bytes) -> None:
        """Replace a descriptor; one without an id, or of an unknown source, is ignored.

        Raises:
            DecodeError: The descriptor is malformed.
        """
        header = DescriptorHeader(descriptor)
        for source in self.data_sources.of(producer, header.name):
            if header.id and source.header.id == header.id:
                source.update(descriptor, header)

    def unregister_data_source(self, producer: ProducerEndpoint, name: str) -> None:
        """Remove what a producer offers under `name`; its instances end."""
        for source in self.data_sources.of(producer, name):
            self._remove(source)

    def _remove(self, source: RegisteredDataSource) -> None:
        self.data_sources.remove(source)
        for session in list(self.sessions.values()):
            session.remove_data_source(source)

    def _set_up(
        self,
        session: TracingSession,
        source: RegisteredDataSource,
        entry: WantedDataSource,
    ) -> None:
        if self._admits(source.producer.identity) and entry.matches(source):
            session.instances.add(source, entry)

    # Consumers and sessions

    def connect_consumer(self, consumer: Consumer, uid: int) -> ConsumerEndpoint:
        """Take in a consumer; who may be one is the caller's to check."""
        return ConsumerEndpoint(self, consumer, uid)

    def set_up_session(self, session: TracingSession) -> None:
        """Set up every data source that the session wants, in the order of its config."""
        self.registry.on_session_state(session.session_id)
        for entry in session.wanted.entries:
            for source in self.data_sources.named(entry.config.name):
                self._set_up(session, source, entry)

    def change_filters(self, session: TracingSession, config: TraceConfig) -> None:
        """Take over the producer filters of a new config, data source by data source.

        Producers that match now, and had nothing of that name in the session, join it.
        Everything else in the new config is left aside.

        Raises:
            ConfigError: A filter can't be used; nothing has changed.
        """
        for entry in session.wanted.take_filters_of(WantedDataSources(config)):
            for source in self.data_sources.named(entry.config.name):
                if not session.instances.has(source.producer, source.name):
                    self._set_up(session, source, entry)

    def encoded_state(self, uid: int, *, sessions_only: bool) -> bytes:
        """Return the encoded TracingServiceState that a consumer of user `uid` may see."""
        return service_state(
            self.context.version,
            self.registry.all(),
            self.producers.values(),
            self.data_sources,
            uid,
            sessions_only=sessions_only,
        )

    def snapshot(self, session_id: int) -> Iterator[bytes]:
        """Copy what a session holds now; it goes on as if nothing had happened.

        Flush the session before, to have what producers hold.

        Args:
            session_id: `ConsumerEndpoint.session_id`.

        Returns:
            The bytes of a whole trace, piece by piece. The copy is made at once, and
            freed when the iterator ends or is closed.

        Raises:
            SessionError: No such session; or there is no memory for the copy.
        """
        session = self.sessions.get(session_id)
        if session is None:
            raise SessionError(f"There is no session {session_id}: it has ended, or never was.")
        return take_snapshot(session, self.buffers)

    # Relays

    def connect_relay(self, machine_id: int) -> RelayEndpoint:
        """Connect the relay of another machine."""
        relays = self.context.relays
        relay = RelayEndpoint(self.context.clock, machine_id, lambda gone: relays.pop(gone, None))
        relays[relay] = None
        return relay
