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
from stretto.service.buffer_pool import BufferPool
from stretto.service.endpoints.consumer_endpoint import ConsumerEndpoint
from stretto.service.endpoints.producer_endpoint import ProducerEndpoint
from stretto.service.endpoints.relay_endpoint import RelayEndpoint
from stretto.service.endpoints.shm_geometry import DEFAULT_PAGE_SIZE, DEFAULT_SHM_SIZE
from stretto.service.id_allocator import IdAllocator
from stretto.service.limits import (
    FILE_BYTES_PER_STEP,
    MAX_DATA_SOURCES_PER_PRODUCER,
    MAX_UNFINISHED_FILES,
)
from stretto.service.output.file_threads import FileThreads
from stretto.service.output.service_packets import ServicePackets
from stretto.service.output.snapshot import take_snapshot
from stretto.service.output.system_info import SystemInfo
from stretto.service.priority_boost import PriorityBoosts
from stretto.service.session import triggers
from stretto.service.session.data_source import RegisteredDataSource
from stretto.service.session.data_source_registry import DataSourceRegistry
from stretto.service.session.guarded_starts import GuardedStarts
from stretto.service.session.tracing_session import TracingSession
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
    from stretto.service.priority_boost import Scheduler
    from stretto.service.session.config_validation import CheckedConfig
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
        self.task_runner = task_runner
        self.clock = clock
        self.version = version
        self.default_geometry = (default_shm_size, default_page_size)
        self.file_step_bytes = file_step_bytes
        self.pipe_patience_ms = pipe_patience_ms
        self.uid = os.getuid() if uid is None else uid
        self.machine_name = machine_name
        self.adopts_writers = adopt_writers
        self.extension_descriptors = extension_descriptors
        self.packets = ServicePackets(self.uid)
        self.system_info = SystemInfo()
        self.buffers = BufferPool()
        self.boosts = PriorityBoosts(scheduler)
        self.producers: dict[int, ProducerEndpoint] = {}
        self.producers_seen = 0
        self.data_sources = DataSourceRegistry()
        self.sessions: dict[int, TracingSession] = {}
        self.unfinished: list[TracingSession] = []
        """Those that are gone, and whose files aren't complete."""
        self.file_threads = file_threads or FileThreads()
        self.waits_for_disk = waits_for_disk
        self._on_error = on_error
        self.without_memory: dict[int, str] = {}
        """Why producers take no part, by pid: the first thousand that got no shared memory."""
        self.next_session_id = 1
        self.relays: dict[RelayEndpoint, None] = {}
        """In the order in which they came."""
        self.lockdown = False
        self.guarded_starts = GuardedStarts()
        self.trigger_history = triggers.TriggerHistory()
        self._random_bytes = random_bytes
        self._producer_ids = IdAllocator(MAX_PRODUCER_ID)
        self.instances_seen = 0
        self._flush_ids = 0
        self._discarded_by_the_dead = Discarded()

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
            self.packets.adopt_machine(identity.machine_id)
        self.producers[producer_id] = endpoint
        self.producers_seen += 1
        return endpoint

    def _admits(self, identity: ProducerIdentity) -> bool:
        """Whether a lockdown, if there is one, leaves this producer in.

        The user id of a remote producer is only its own claim.
        """
        return not self.lockdown or (identity.uid == self.uid and not identity.is_remote)

    def note_lack_of_memory(self, pid: int, reason: str) -> None:
        """A producer takes no part in a session: there is no memory for it."""
        if len(self.without_memory) < MAX_WITHOUT_MEMORY:
            self.without_memory[pid] = reason

    def disconnect_producer(self, producer: ProducerEndpoint) -> None:
        """Keep what the producer has written, then forget it (called by its endpoint)."""
        if self.adopts_writers:
            producer.adopt_writers()
        for session in self.sessions.values():
            producer.scrape(session.buffers)
        for source in self.data_sources.of_producer(producer):
            self._remove(source)
        for session in list(self.sessions.values()):
            session.flushes.producer_gone(producer)
        self._discarded_by_the_dead.add(producer)
        del self.producers[producer.producer_id]
        self._producer_ids.free(producer.producer_id)

    def discarded(self) -> Discarded:
        """What producers, dead ones included, sent that no buffer would take."""
        total = Discarded()
        total.chunks = self._discarded_by_the_dead.chunks
        total.patches = self._discarded_by_the_dead.patches
        for producer in self.producers.values():
            total.add(producer)
        return total

    def activate_triggers(self, producer: ProducerEndpoint, names: Sequence[str]) -> None:
        """Give every session those of the triggers that it waits for."""
        now_ns = self.clock.boottime_ns()
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
        if not wanted.accepts(producer.name, count, self._random):
            return False
        now_ns = self.clock.boottime_ns()
        session.on_trigger(
            triggers.ReceivedTrigger(
                name, producer.name, producer.identity.uid, now_ns, wanted.stop_delay_ms
            )
        )
        return True

    def _random(self) -> float:
        return int.from_bytes(self._random_bytes(6), "big") / (1 << 48)

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

    def add_session(
        self,
        consumer: ConsumerEndpoint,
        config: TraceConfig,
        *,
        config_bytes: bytes,
        checked: CheckedConfig,
        buffers: list[int],
        output_fd: int | None,
        uuid: tuple[int, int],
    ) -> TracingSession:
        """Take in a session whose config was checked; its buffers and file are its own now."""
        session = TracingSession(
            self,
            self.next_session_id,
            consumer,
            config,
            config_bytes=config_bytes,
            checked=checked,
            buffers=buffers,
            output_fd=output_fd,
            uuid=uuid,
        )
        self.sessions[session.session_id] = session
        self.next_session_id += 1
        return session

    def set_up_session(self, session: TracingSession) -> None:
        """Set up every data source that the session wants, in the order of its config."""
        self.on_session_state(session)
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

    def sessions_other_than(self, session: TracingSession) -> list[TracingSession]:
        """All other sessions, those that have ended but weren't freed included."""
        return [each for each in self.sessions.values() if each is not session]

    def on_session_state(self, session: TracingSession) -> None:
        """A session has entered a state: others may want that in their traces."""
        for other in self.sessions_other_than(session):
            if other.concurrent and other.started:
                other.concurrent.note(session)

    def find_detached(self, key: str, uid: int) -> TracingSession | None:
        """The session that a user has left under `key`."""
        for session in self.sessions.values():
            if session.owner is None and session.detach_key == key and session.uid == uid:
                return session
        return None

    def forget_session(self, session: TracingSession) -> None:
        """Free a session's buffers (called by the session when it has ended).

        Those of which something is still to be written into its file follow later.
        """
        self.boosts.remove(session.session_id)
        del self.sessions[session.session_id]
        if session.complete:
            self.buffers.free(session.buffers)
            return
        self.unfinished.append(session)
        if len(self.unfinished) > MAX_UNFINISHED_FILES:
            self.give_up_file(self.unfinished[0])

    def give_up_file(self, session: TracingSession) -> None:
        """Wait no longer for the file of a session that is gone."""
        assert session.drain is not None
        session.drain.give_up()

    def file_complete(self, session: TracingSession) -> None:
        """The file of a session that is gone takes no more (called by the session)."""
        if session not in self.unfinished:
            return  # it was complete when the session went
        assert session.drain is not None
        self.unfinished.remove(session)
        self.buffers.free(session.buffers)
        if session.drain.error:
            self._on_error(SessionError(f"session {session.session_id}: {session.drain.error}"))

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
        """Take in the relay of another machine."""
        relay = RelayEndpoint(self, machine_id)
        self.relays[relay] = None
        return relay

    def disconnect_relay(self, relay: RelayEndpoint) -> None:
        """The relay goes (called by its endpoint). Harmless if it has gone."""
        self.relays.pop(relay, None)

    # Ids that are unique in this service

    def next_instance_id(self) -> int:
        """Id for a data source instance."""
        self.instances_seen += 1
        return self.instances_seen

    def next_flush_id(self) -> int:
        """Id for a flush; later ones are higher."""
        self._flush_ids += 1
        return self._flush_ids

    def new_uuid(self) -> tuple[int, int]:
        """A random (version 4) uuid as (most, least significant 64 bits), unsigned."""
        value = int.from_bytes(self._random_bytes(16), "big")
        value = value & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
        return value >> 64, value & (1 << 64) - 1


class Discarded:
    """How much of what producers sent went nowhere."""

    __slots__ = ("chunks", "patches")

    def __init__(self) -> None:
        self.chunks = 0
        self.patches = 0

    def add(self, producer: ProducerEndpoint) -> None:
        """Count what came from `producer`."""
        stats = producer.core.stats()
        self.chunks += stats["chunks_discarded"]
        self.patches += stats["patches_discarded"]
