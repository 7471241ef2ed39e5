"""The tracing service: who is connected, what they offer, which sessions run.

It is one state machine without sockets, threads, time or randomness of its own: all come
from outside, so that it runs inside a program, in a daemon and under a test alike. Every
method is called on the task runner's thread; only trace data moves on other threads, in
native code.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.base.errors import ConfigError, DecodeError, SessionError
from stretto.base.ids import MAX_BUFFER_ID, MAX_PRODUCER_ID
from stretto.protos.config import TraceConfig
from stretto.service.config_validation import check_against_sessions, check_config
from stretto.service.consumer_endpoint import ConsumerEndpoint
from stretto.service.data_source import RegisteredDataSource
from stretto.service.id_allocator import IdAllocator
from stretto.service.limits import FILE_BYTES_PER_STEP, MAX_DATA_SOURCES_PER_PRODUCER
from stretto.service.output_file import create_output_file
from stretto.service.producer_endpoint import ProducerEndpoint
from stretto.service.service_packets import ServicePackets
from stretto.service.shm_geometry import DEFAULT_PAGE_SIZE, DEFAULT_SHM_SIZE
from stretto.service.snapshot import take_snapshot
from stretto.service.system_info import SystemInfo
from stretto.service.tracing_session import TracingSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stretto.base.clock import Clock
    from stretto.base.task_runner import TaskRunner
    from stretto.ports.endpoints import Consumer, Producer, RemoteProducer
    from stretto.protos.config import DataSourceDescriptor


class TracingService:
    """Registry of producers, data sources, buffers and sessions.

    Args:
        task_runner: Runs everything that happens later.
        clock: The time.
        random_bytes: Where trace uuids come from.
        version: How the service calls itself in a trace.
        default_shm_size: Bytes of shared memory of a producer that asks for none.
        default_page_size: Bytes of its pages.
        file_step_bytes: What a session that writes a file reads at a time; other tasks wait
            meanwhile.
        uid: Whom the service's own packets name as their writer.
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
    ) -> None:
        self.task_runner = task_runner
        self.clock = clock
        self.version = version
        self.default_geometry = (default_shm_size, default_page_size)
        self.file_step_bytes = file_step_bytes
        self.uid = os.getuid() if uid is None else uid
        self.packets = ServicePackets(self.uid)
        self.system_info = SystemInfo()
        self.table = _native.BufferTable()
        self.producers: dict[int, ProducerEndpoint] = {}
        self.producers_seen = 0
        self.data_sources: list[RegisteredDataSource] = []
        self.data_sources_seen = 0
        self.sessions: dict[int, TracingSession] = {}
        self._random_bytes = random_bytes
        self._producer_ids = IdAllocator(MAX_PRODUCER_ID)
        self._buffer_ids = IdAllocator(MAX_BUFFER_ID)
        self._session_ids = 0
        self._instance_ids = 0
        self._flush_ids = 0
        self._guarded_starts: dict[str, int] = {}
        self._discarded_by_the_dead = Discarded()

    # Producers

    def connect_producer(
        self,
        producer: Producer | RemoteProducer,
        *,
        uid: int,
        pid: int,
        name: str,
        in_process: bool = False,
        page_size_hint: int = 0,
        shm_size_hint: int = 0,
        smb_scraping: bool = True,
        sdk_version: str = "",
    ) -> ProducerEndpoint:
        """Take in a producer.

        Args:
            producer: Gets the callbacks; a RemoteProducer unless `in_process`.
            uid: Whose process it is, as the kernel says it.
            pid: Likewise; 0 if unknown.
            name: What it calls itself.
            in_process: Its writers share this process: memory is private to it.
            page_size_hint: Bytes that it wishes, 0 for the default.
            shm_size_hint: Likewise.
            smb_scraping: Whether chunks may be read before it commits them.
            sdk_version: What it says about its library.

        Raises:
            SessionError: 65535 producers are connected.
        """
        producer_id = self._producer_ids.allocate()
        if not producer_id:
            raise SessionError(f"{MAX_PRODUCER_ID} producers are connected, which is the most.")
        endpoint = ProducerEndpoint(
            self,
            producer,
            producer_id,
            uid=uid,
            pid=pid,
            name=name,
            in_process=in_process,
            page_size_hint=page_size_hint,
            shm_size_hint=shm_size_hint,
            smb_scraping=smb_scraping,
            sdk_version=sdk_version,
        )
        self.producers[producer_id] = endpoint
        self.producers_seen += 1
        return endpoint

    def disconnect_producer(self, producer: ProducerEndpoint) -> None:
        """Keep what the producer has written, then forget it (called by its endpoint)."""
        for session in self.sessions.values():
            producer.scrape(session.buffers)
        for source in [each for each in self.data_sources if each.producer is producer]:
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

    # Data sources

    def register_data_source(
        self, producer: ProducerEndpoint, descriptor: DataSourceDescriptor
    ) -> None:
        """Add what a producer offers, and set it up where a session wants it."""
        own = sum(source.producer is producer for source in self.data_sources)
        if not descriptor.name or own >= MAX_DATA_SOURCES_PER_PRODUCER:
            return
        source = RegisteredDataSource(producer, descriptor)
        self.data_sources.append(source)
        self.data_sources_seen += 1
        for session in self.sessions.values():
            if session.accepts_data_sources:
                for entry in session.config.data_sources:
                    if source.matches(entry):
                        session.add_instance(source, entry)

    def update_data_source(
        self, producer: ProducerEndpoint, descriptor: DataSourceDescriptor
    ) -> None:
        """Replace a descriptor; one without an id, or of an unknown source, is ignored."""
        for source in self.data_sources:
            known = source.descriptor
            same = known.id == descriptor.id and known.name == descriptor.name
            if source.producer is producer and descriptor.id and same:
                source.descriptor = descriptor

    def unregister_data_source(self, producer: ProducerEndpoint, name: str) -> None:
        """Remove what a producer offers under `name`; its instances end."""
        for source in list(self.data_sources):
            if source.producer is producer and source.name == name:
                for session in self.sessions.values():
                    producer.scrape(session.buffers)
                self._remove(source)

    def _remove(self, source: RegisteredDataSource) -> None:
        self.data_sources.remove(source)
        for session in list(self.sessions.values()):
            session.remove_data_source(source)

    # Consumers and sessions

    def connect_consumer(self, consumer: Consumer, uid: int) -> ConsumerEndpoint:
        """Take in a consumer; who may be one is the caller's to check."""
        return ConsumerEndpoint(self, consumer, uid)

    def create_session(
        self,
        consumer: ConsumerEndpoint,
        config_bytes: bytes,
        fd: int | None,
        ring_fds: Mapping[int, int],
    ) -> TracingSession:
        """Make a session in state CONFIGURED (called by the consumer's endpoint).

        Raises:
            ConfigError: The config can't be read or accepted.
            SessionError: It can't run now: too many sessions, no memory, no file.
        """
        config = _decode(config_bytes)
        now_ns = self.clock.boottime_ns()
        check_config(config, has_fd=fd is not None)
        check_against_sessions(
            config, consumer.uid, self.sessions.values(), self._guarded_starts, now_ns
        )
        output_fd = self._open_output(config, fd, consumer.uid)
        try:
            buffers = self._create_buffers(config, ring_fds)
        except SessionError:
            if output_fd is not None:
                os.close(output_fd)
            raise
        if config.enable_extra_guardrails:
            self._guarded_starts[config.unique_session_name] = now_ns
        self._session_ids += 1
        uuid = self._uuid_of(config)
        session = TracingSession(
            self,
            self._session_ids,
            consumer,
            config,
            config_bytes=config_bytes,
            buffers=buffers,
            output_fd=output_fd,
            uuid=uuid,
        )
        self.sessions[session.session_id] = session
        return session

    def _open_output(self, config: TraceConfig, fd: int | None, uid: int) -> int | None:
        if not config.write_into_file:
            return None
        if fd is not None:
            try:
                return os.dup(fd)
            except OSError as error:
                raise SessionError(
                    f"Descriptor {fd} can't be written to ({error.strerror}): pass an open file."
                ) from error
        if uid != self.uid:
            raise SessionError(
                f"output_path is for the service's own user ({self.uid}), not for {uid}: "
                "pass a file descriptor."
            )
        return create_output_file(config.output_path)

    def _create_buffers(self, config: TraceConfig, ring_fds: Mapping[int, int]) -> list[int]:
        buffers: list[int] = []
        for index, buffer in enumerate(config.buffers):
            ident = self._buffer_ids.allocate()
            policy = buffer.fill_policy or _native.RING
            try:
                self.table.create(ident, buffer.size_kb * 1024, policy, ring_fds.get(index, -1))
            except (MemoryError, OSError, ValueError) as error:
                self._buffer_ids.free(ident)
                self._free_buffers(buffers)
                raise SessionError(
                    f"A buffer of {buffer.size_kb} KiB can't be made: "
                    f"{str(error) or 'out of memory'}; use fewer or smaller buffers."
                ) from error
            buffers.append(ident)
        return buffers

    def _free_buffers(self, buffers: list[int]) -> None:
        for ident in buffers:
            self.table.remove(ident)
            self._buffer_ids.free(ident)

    def _uuid_of(self, config: TraceConfig) -> tuple[int, int]:
        if config.trace_uuid_msb or config.trace_uuid_lsb:
            return config.trace_uuid_msb, config.trace_uuid_lsb
        return self.new_uuid()

    def new_uuid(self) -> tuple[int, int]:
        """A random (version 4) uuid as (most, least significant 64 bits), unsigned."""
        value = int.from_bytes(self._random_bytes(16), "big")
        value = value & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
        return value >> 64, value & (1 << 64) - 1

    def set_up_session(self, session: TracingSession) -> None:
        """Set up every data source that the session wants, in the order of its config."""
        for entry in session.config.data_sources:
            for source in list(self.data_sources):
                if source.matches(entry):
                    session.add_instance(source, entry)

    def forget_session(self, session: TracingSession) -> None:
        """Free a session's buffers (called by the session when it has ended)."""
        self._free_buffers(session.buffers)
        del self.sessions[session.session_id]

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
        return take_snapshot(session, self._buffer_ids)

    # Ids that are unique in this service

    def next_instance_id(self) -> int:
        """Id for a data source instance."""
        self._instance_ids += 1
        return self._instance_ids

    def next_flush_id(self) -> int:
        """Id for a flush; later ones are higher."""
        self._flush_ids += 1
        return self._flush_ids


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


def _decode(config: bytes) -> TraceConfig:
    try:
        return TraceConfig.decode(config)
    except DecodeError as error:
        raise ConfigError(f"The trace config is malformed: {error}") from error
