"""A tracing session: the state machine, and what happens at each of its steps.

::

    (new) -> CONFIGURED -> STARTED -> DISABLING_WAITING_STOP_ACKS -> DISABLED -> (freed)
                  |           |                                         ^
                  +-----------+-------- nobody has to confirm ----------+

Rules:
- A data source that registers late joins while the session is CONFIGURED or STARTED.
- A session ends once, and says so to its consumer once, with the first error it met.
- Freeing is possible in every state; nothing of a freed session runs afterwards.
"""

from __future__ import annotations

from stretto.base.errors import LocalProtocolError
from stretto.protos.config import TraceConfig
from stretto.service import data_source, limits
from stretto.service.clock_snapshots import ClockSnapshots
from stretto.service.config_validation import buffer_index
from stretto.service.file_drain import FileDrain, flush_period_ms
from stretto.service.flush import PERIODIC, TRACE_STOP, Flushes
from stretto.service.lifecycle_events import LifecycleEvents
from stretto.service.output_file import OutputFile
from stretto.service.read_buffers import Reader
from stretto.service.service_packets import (
    ALL_DATA_SOURCES_STARTED,
    SLOW_STARTING_DATA_SOURCES,
    TRACING_DISABLED,
    TRACING_STARTED,
)
from stretto.service.timers import Timers
from stretto.service.trace_stats import FINAL_FLUSH_FAILED, FINAL_FLUSH_SUCCEEDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from stretto.service.consumer_endpoint import ConsumerEndpoint
    from stretto.service.data_source import DataSourceInstance, RegisteredDataSource
    from stretto.service.producer_endpoint import ProducerEndpoint
    from stretto.service.tracing_service import TracingService

DISABLED: Final = "DISABLED"
CONFIGURED: Final = "CONFIGURED"
STARTED: Final = "STARTED"
DISABLING_WAITING_STOP_ACKS: Final = "STOP_WAIT"

TRANSITIONS: Final = {
    CONFIGURED: (STARTED, DISABLED),
    STARTED: (DISABLING_WAITING_STOP_ACKS, DISABLED),
    DISABLING_WAITING_STOP_ACKS: (DISABLED,),
    DISABLED: (),
}


class TracingSession:
    """One session of one consumer; `service` owns it, with its buffers."""

    __slots__ = (
        "_all_started",
        "_consumer",
        "_error",
        "_freed",
        "buffers",
        "builtin",
        "clocks",
        "config",
        "config_bytes",
        "drain",
        "final_flush_outcome",
        "flushes",
        "instances",
        "lifecycle",
        "reader",
        "service",
        "session_id",
        "state",
        "timers",
        "uid",
        "uuid",
    )

    def __init__(
        self,
        service: TracingService,
        session_id: int,
        consumer: ConsumerEndpoint,
        config: TraceConfig,
        *,
        config_bytes: bytes,
        buffers: list[int],
        output_fd: int | None,
        uuid: tuple[int, int],
    ) -> None:
        """`buffers` are global ids, in the order of the config; `output_fd` is owned."""
        self.service = service
        self.session_id = session_id
        self.config = config
        self.config_bytes = config_bytes
        self.builtin = config.builtin_data_sources or TraceConfig.BuiltinDataSource()
        self.buffers = buffers
        self.uid = consumer.uid
        self.uuid = uuid
        self.state = CONFIGURED
        self.instances: list[DataSourceInstance] = []
        self.timers = Timers(service.task_runner, service.clock)
        snapshots = not self.builtin.disable_clock_snapshotting
        self.clocks = ClockSnapshots(service.clock, enabled=snapshots)
        self.lifecycle = LifecycleEvents(service.clock)
        self.flushes = Flushes(self)
        self.reader = Reader(self, buffers, uuid, self.clocks, self.lifecycle)
        self.final_flush_outcome = 0
        self.drain: FileDrain | None = None
        if output_fd is not None:
            self.drain = FileDrain(self, OutputFile(output_fd, config.max_file_size_bytes))
        self._consumer = consumer
        self._error = ""
        self._all_started = False
        self._freed = False

    @property
    def started(self) -> bool:
        return self.state == STARTED

    @property
    def active(self) -> bool:
        """Whether it hasn't ended."""
        return self.state != DISABLED

    @property
    def accepts_data_sources(self) -> bool:
        return self.state in (CONFIGURED, STARTED)

    @property
    def writes_file(self) -> bool:
        """Whether its data goes into a file, and so to no reader."""
        return self.drain is not None and self.drain.open

    def _move_to(self, state: str) -> None:
        if state not in TRANSITIONS[self.state]:
            raise LocalProtocolError(f"a session can't go from {self.state} to {state}")
        self.state = state

    def note(self, event: int) -> None:
        """Note a lifecycle event, and how the clocks stand at it."""
        self.clocks.take()
        self.lifecycle.add(event)

    # Set-up and start

    def add_instance(self, source: RegisteredDataSource, entry: TraceConfig.DataSource) -> None:
        """Set up `source` for an entry of the config; start it if the session runs."""
        assert entry.config is not None  # `source` matched it
        if not source.producer.ensure_shared_memory(self.config):
            return
        buffer_id = self.buffers[buffer_index(entry.config, self.config)]
        source.producer.allow_buffer(buffer_id)
        config = data_source.config_for_producer(
            entry.config, self.config, self.session_id, buffer_id, self._stop_timeout_ms
        )
        instance_id = self.service.next_instance_id()
        instance = data_source.DataSourceInstance(instance_id, source, config)
        self.instances.append(instance)
        instance.set_up()
        if self.started:
            instance.start()

    def start(self) -> None:
        """Start all data sources and timers. Does nothing unless CONFIGURED."""
        if self.state != CONFIGURED:
            return
        self._move_to(STARTED)
        self.clocks.take_initial()
        self.lifecycle.add(TRACING_STARTED)
        self._snapshot_periodically()
        self._arm_timers()
        for instance in self.instances:
            instance.start()
        self._check_all_started()

    def _snapshot_periodically(self) -> None:
        self.reader.sync_due = self.reader.stats_due = True
        self.clocks.take()
        interval = self.builtin.snapshot_interval_ms or limits.DEFAULT_SNAPSHOT_INTERVAL_MS
        self.timers.once("snapshot", interval, self._snapshot_periodically)

    def _arm_timers(self) -> None:
        config, timers = self.config, self.timers
        if config.duration_ms:
            timers.once("duration", config.duration_ms, self.flush_and_disable)
        if self.drain:
            self.drain.start()
        if flush_period_ms(config):
            timers.every("flush", flush_period_ms(config), self._flush_periodically)
        incremental = config.incremental_state_config
        if incremental is not None and incremental.clear_period_ms:
            timers.every("clear", incremental.clear_period_ms, self._clear_incremental_state)
        timers.once("slow start", limits.SLOW_START_MS, self._note_slow_starters)

    def _flush_periodically(self) -> None:
        self.flushes.start(0, PERIODIC, lambda _: None)

    def _clear_incremental_state(self) -> None:
        targets: dict[ProducerEndpoint, list[int]] = {}
        for instance in self.instances:
            if instance.source.descriptor.handles_incremental_state_clear:
                targets.setdefault(instance.producer, []).append(instance.instance_id)
        for producer, instance_ids in targets.items():
            producer.clear_incremental_state(instance_ids)

    def on_data_source_started(self, producer: ProducerEndpoint, instance_id: int) -> None:
        """A producer confirms that an instance runs."""
        for instance in self._instances_of(producer):
            if instance.instance_id == instance_id and instance.state == data_source.STARTING:
                instance.state = data_source.STARTED
                self._check_all_started()

    def _check_all_started(self) -> None:
        if self._all_started or not self.started:
            return
        if all(instance.state == data_source.STARTED for instance in self.instances):
            self._all_started = True
            self.note(ALL_DATA_SOURCES_STARTED)

    def _note_slow_starters(self) -> None:
        slow = [each.label for each in self.instances if each.state == data_source.STARTING]
        if slow:
            self.lifecycle.add(SLOW_STARTING_DATA_SOURCES, slow)

    # The end

    def flush_and_disable(self) -> None:
        """Flush, then end: what a session does when its time is up."""

        def flushed(success: bool) -> None:
            self.final_flush_outcome = FINAL_FLUSH_SUCCEEDED if success else FINAL_FLUSH_FAILED
            self.disable()

        if self.started:
            self.flushes.start(0, TRACE_STOP, flushed)

    def disable(self, *, immediate: bool = False) -> None:
        """Stop all data sources; the session ends when they have confirmed it.

        Args:
            immediate: Don't wait for them.
        """
        if self.state == DISABLED or (self.state == DISABLING_WAITING_STOP_ACKS and not immediate):
            return
        immediate = immediate or self.state == CONFIGURED
        for instance in self.instances:
            instance.stop(immediate=immediate)
        self.timers.cancel("snapshot")
        if self._all_stopped():
            self._finalize()
        else:
            self._move_to(DISABLING_WAITING_STOP_ACKS)
            self.timers.once("stop", self._stop_timeout_ms, self._finalize)

    @property
    def _stop_timeout_ms(self) -> int:
        return self.config.data_source_stop_timeout_ms or limits.DEFAULT_STOP_TIMEOUT_MS

    def _all_stopped(self) -> bool:
        return all(instance.state == data_source.STOPPED for instance in self.instances)

    def on_data_source_stopped(self, producer: ProducerEndpoint, instance_id: int) -> None:
        """A producer confirms that an instance has ended, or says that it ended by itself."""
        for instance in self._instances_of(producer):
            if instance.instance_id == instance_id:
                instance.state = data_source.STOPPED
                self._check_all_stopped()

    def _check_all_stopped(self) -> None:
        if self.state == DISABLING_WAITING_STOP_ACKS and self._all_stopped():
            self._finalize()

    def _finalize(self) -> None:
        for name in ("stop", "duration", "flush", "clear", "slow start"):
            self.timers.cancel(name)
        for instance in self.instances:
            instance.state = data_source.STOPPED
        self._move_to(DISABLED)
        self.scrape()
        self.note(TRACING_DISABLED)
        if self.drain:
            # What is committed from here on nobody will read; and the last pass must end.
            self._forbid_buffers()
            self.drain.finish()
        self._consumer.on_tracing_disabled(self._error)

    def note_error(self, error: str) -> None:
        """Keep the first error for the consumer."""
        self._error = self._error or error

    def fail(self, error: str) -> None:
        """End the session because of `error`."""
        self.note_error(error)
        self.disable()

    def free(self) -> None:
        """End the session at once and give back all that it holds."""
        if self._freed:
            return
        self._freed = True
        self.disable(immediate=True)
        self._forbid_buffers()
        self.instances.clear()
        self.flushes.abandon()
        self.timers.cancel_all()
        self.service.forget_session(self)

    def _forbid_buffers(self) -> None:
        for producer in self.service.producers.values():
            producer.forbid_buffers(self.buffers)

    # Producers

    def _instances_of(self, producer: ProducerEndpoint) -> list[DataSourceInstance]:
        return [instance for instance in self.instances if instance.producer is producer]

    def scrape(self) -> None:
        """Copy into the buffers what producers have written but not committed."""
        for producer in self.service.producers.values():
            producer.scrape(self.buffers)

    def remove_data_source(self, source: RegisteredDataSource) -> None:
        """A data source goes away while the session may use it."""
        for instance in [each for each in self.instances if each.source is source]:
            instance.stop(immediate=True)
            self.instances.remove(instance)
        self._check_all_started()
        self._check_all_stopped()
