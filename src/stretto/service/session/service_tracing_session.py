"""A tracing session: the state machine and its transitions.

::

    (new) -> CONFIGURED -> STARTED -> DISABLING_WAITING_STOP_ACKS -> DISABLED -> (freed)
                |  |          |                                         ^
                |  +----------+-------- no confirmation pending ----------+
                +--> CLONED_READ_ONLY -> (freed)

Rules:
- A data source that registers late joins if the session is CONFIGURED or STARTED.
- A session ends once, and reports its end to its consumer once, with its first error.
- A session without a consumer is detached: it is freed when its duration ends.
- A session can be freed in every state; none of its tasks runs afterwards.
"""

from __future__ import annotations

from stretto.base.errors import LocalProtocolError
from stretto.protos.config import TraceConfig
from stretto.service import limits
from stretto.service.output.clock_snapshots import ClockSnapshots
from stretto.service.output.lifecycle_events import LifecycleEvents
from stretto.service.output.read_buffers import Reader
from stretto.service.output.service_packets import (
    ALL_DATA_SOURCES_STARTED,
    SLOW_STARTING_DATA_SOURCES,
    TRACING_DISABLED,
    TRACING_STARTED,
)
from stretto.service.output.trace_stats import FINAL_FLUSH_FAILED, FINAL_FLUSH_SUCCEEDED
from stretto.service.session import triggers
from stretto.service.session.flush import TRACE_STOP, Flushes
from stretto.service.session.instances import Instances
from stretto.service.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from stretto import _native
    from stretto.base.clock import Clock
    from stretto.service.output.compressor import Compressor
    from stretto.service.output.concurrent_sessions import ConcurrentSessions
    from stretto.service.output.file_drain import FileDrain
    from stretto.service.output.trace_stats import ServiceCounts
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.compiled_config import CompiledConfig
    from stretto.service.session.data_source import DataSourceInstance, RegisteredDataSource
    from stretto.service.session.requested_data_sources import RequestedDataSources
    from stretto.service.session.session_host import SessionHost
    from stretto.service.session.session_owner import SessionOwner, UnfinishedClone
    from stretto.service.session.session_producer import SessionProducer

ROOT: Final = 0

DISABLED: Final = "DISABLED"
CONFIGURED: Final = "CONFIGURED"
STARTED: Final = "STARTED"
DISABLING_WAITING_STOP_ACKS: Final = "STOP_WAIT"
CLONED_READ_ONLY: Final = "CLONED_READ_ONLY"

TRANSITIONS: Final = {
    CONFIGURED: (STARTED, DISABLED, CLONED_READ_ONLY),
    STARTED: (DISABLING_WAITING_STOP_ACKS, DISABLED),
    DISABLING_WAITING_STOP_ACKS: (DISABLED,),
    DISABLED: (),
    CLONED_READ_ONLY: (),
}


class ServiceTracingSession:
    """A tracing session in the service.

    Attributes:
        owner: Endpoint of the consumer; None while the session is detached.
        detach_key: Key to attach the session again; "" unless it is detached.
        duration_ms: Duration in ms from the start, from the config or a trigger; 0 for no
            limit.
        all_started: Whether all data sources of the session have started.
        clones: Clones of this session that wait for flushes.
        clone_trigger: In a clone, the trigger that has caused it.
    """

    def __init__(
        self,
        context: ServiceContext,
        host: SessionHost,
        session_id: int,
        owner: SessionOwner,
        compiled: CompiledConfig,
        *,
        config_bytes: bytes,
        buffers: list[int],
        output_fd: int | None,
        uuid: tuple[int, int],
    ) -> None:
        """Create a session; it owns `buffers` (global ids by index) and `output_fd`."""
        config, clock = compiled.config, context.clock
        self.context = context
        self.host = host
        self.session_id = session_id
        self.owner: SessionOwner | None = owner
        self.detach_key = ""
        self.compiled = compiled
        self.config = config
        self.config_bytes = config_bytes
        self.builtin = config.builtin_data_sources or TraceConfig.BuiltinDataSource()
        self.buffers = buffers
        self.uid = owner.uid
        self.uuid = uuid
        self.state = CONFIGURED
        self.triggers = triggers.SessionTriggers(config.trigger_config, compiled.triggers)
        self.duration_ms = config.duration_ms
        if self.triggers.mode in (triggers.STOP_TRACING, triggers.CLONE_SNAPSHOT):
            self.duration_ms = self.triggers.timeout_ms
        self.instances = Instances(self, self._on_instance_state)
        self.timers = Timers(context.task_runner, clock)
        snapshots = not self.builtin.disable_clock_snapshotting
        self.clocks = ClockSnapshots(clock, enabled=snapshots)
        self.lifecycle = LifecycleEvents(clock)
        self.concurrent = _concurrent_sessions(self.builtin, clock)
        self.flushes = Flushes(self)
        self.compress = _compressor(config)
        self.reader = Reader(self, buffers, uuid, self.clocks, self.lifecycle)
        self.final_flush_outcome = 0
        self.clones: list[UnfinishedClone] = []
        self.clone_trigger: triggers.ReceivedTrigger | None = None
        self.drain = None if output_fd is None else _file_drain(self, output_fd)
        self._error = ""
        self._end_due = False  # Whether the end is to be reported when the file is complete.
        self.all_started = False
        self._freed = False

    @property
    def started(self) -> bool:
        return self.state == STARTED

    @property
    def active(self) -> bool:
        """Whether the session has not ended and isn't a clone."""
        return self.state not in (DISABLED, CLONED_READ_ONLY)

    @property
    def is_clone(self) -> bool:
        return self.state == CLONED_READ_ONLY

    @property
    def accepts_data_sources(self) -> bool:
        return self.state in (CONFIGURED, STARTED)

    @property
    def writes_file(self) -> bool:
        """Whether the session's data is written into a file, so that consumers can't read it."""
        return self.drain is not None and self.drain.open

    @property
    def readable(self) -> bool:
        """Whether consumers can read the trace now.

        They can't before the first trigger, or if triggers clone the session."""
        if self.is_clone:
            return True
        return not self.triggers.waiting and self.triggers.mode != triggers.CLONE_SNAPSHOT

    @property
    def stop_timeout_ms(self) -> int:
        """Timeout in ms for data sources to stop."""
        return self.config.data_source_stop_timeout_ms or limits.DEFAULT_STOP_TIMEOUT_MS

    @property
    def requested(self) -> RequestedDataSources:
        """The data sources that the session's config requests."""
        return self.compiled.requested

    @property
    def message_filter(self) -> _native.MessageFilter | None:
        """The compiled trace filter of the session's config; None without one."""
        return self.compiled.message_filter

    def service_counts(self) -> ServiceCounts:
        """Return the service-wide counters of TraceStats."""
        return self.host.counts()

    def may_be_cloned_by(self, uid: int) -> bool:
        """Return whether a user may read the session: only its own user and root may."""
        return uid in (ROOT, self.uid)

    def _move_to(self, state: str) -> None:
        if state not in TRANSITIONS[self.state]:
            raise LocalProtocolError(f"a session can't go from {self.state} to {state}")
        self.state = state
        self.host.on_session_state(self.session_id)

    def note(self, event: int) -> None:
        """Add a lifecycle event and a clock snapshot."""
        self.clocks.take()
        self.lifecycle.add(event)

    def start_unless_deferred(self) -> None:
        """Start, unless the consumer or a trigger starts it later."""
        if self.triggers.mode == triggers.START_TRACING:
            self.timers.once("trigger timeout", self.triggers.timeout_ms, self._on_no_trigger)
        elif not self.config.deferred_start:
            self.start()

    def _on_no_trigger(self) -> None:
        if self.triggers.waiting:
            self.disable()

    def start(self) -> None:
        """Start all data sources and timers. No effect unless the session is CONFIGURED."""
        if self.state != CONFIGURED:
            return
        self._move_to(STARTED)
        self.timers.cancel("trigger timeout")
        if self.concurrent:
            self.concurrent.note_all(self.host.sessions_other_than(self.session_id))
        self.clocks.take_initial()
        self.lifecycle.add(TRACING_STARTED)
        self._snapshot_periodically()
        self._arm_timers()
        self.instances.start()
        self.check_all_started()

    def _snapshot_periodically(self) -> None:
        self.reader.sync_due = self.reader.stats_due = True
        self.clocks.take()
        interval = self.builtin.snapshot_interval_ms or limits.DEFAULT_SNAPSHOT_INTERVAL_MS
        prefers_suspend_clock = self.builtin.prefer_suspend_clock_for_snapshot
        self._timer(prefers_suspend_clock)("snapshot", interval, self._snapshot_periodically)

    def _timer(
        self, prefers_suspend_clock: bool
    ) -> Callable[[str, float, Callable[[], object]], None]:
        timers = self.timers
        return timers.once_counting_suspend if prefers_suspend_clock else timers.once

    def _arm_timers(self) -> None:
        config, timers = self.config, self.timers
        if self.duration_ms:
            timer = self._timer(config.prefer_suspend_clock_for_duration)
            timer("duration", self.duration_ms, self._on_duration)
        if self.drain:
            self.drain.start()
        flush_period_ms = self.drain.flush_period_ms if self.drain else config.flush_period_ms
        if flush_period_ms:
            timers.every("flush", flush_period_ms, self._flush_periodically)
        incremental = config.incremental_state_config
        if incremental is not None and incremental.clear_period_ms:
            timers.every("clear", incremental.clear_period_ms, self._clear_incremental_state)
        timers.once("slow start", limits.SLOW_START_MS, self._note_slow_starters)

    def _flush_periodically(self) -> None:
        self.flushes.start_periodic(lambda _: None)

    def _clear_incremental_state(self) -> None:
        targets: dict[SessionProducer, list[int]] = {}
        for instance in self.instances:
            if instance.source.header.handles_incremental_state_clear:
                targets.setdefault(instance.producer, []).append(instance.instance_id)
        for producer, instance_ids in targets.items():
            producer.clear_incremental_state(instance_ids)

    def _on_instance_state(self, instance: DataSourceInstance) -> None:
        if self.owner:
            self.owner.observer.instance_changed(instance)

    def on_data_source_started(self, producer: SessionProducer, instance_id: int) -> None:
        """Handle the confirmation of a start."""
        if self.instances.on_started(producer, instance_id):
            self.check_all_started()

    def check_all_started(self) -> None:
        """Report, once, that all data sources have started, if there is a consumer."""
        if self.all_started or not self.started or not self.owner:
            return
        if self.instances.all_started:
            self.all_started = True
            self.note(ALL_DATA_SOURCES_STARTED)
            self.owner.observer.all_started()

    def _note_slow_starters(self) -> None:
        slow = self.instances.starting()
        if slow and self.owner:
            self.lifecycle.add(SLOW_STARTING_DATA_SOURCES, slow)

    def on_trigger(self, trigger: triggers.ReceivedTrigger) -> None:
        """Handle an activated trigger of this session."""
        received = self.triggers.received
        if len(received) >= limits.MAX_RECEIVED_TRIGGERS:
            return
        self.clocks.take()
        received.append(trigger)
        mode = self.triggers.mode
        if mode == triggers.START_TRACING and self.state == CONFIGURED:
            self.duration_ms = trigger.stop_delay_ms
            self.start()
        elif mode == triggers.STOP_TRACING and len(received) == 1:
            self.timers.once("trigger", trigger.stop_delay_ms, self.flush_and_disable)
        elif mode == triggers.CLONE_SNAPSHOT:
            self.context.task_runner.post_delayed(
                lambda: self._report_clone_trigger(trigger), trigger.stop_delay_ms
            )

    def _report_clone_trigger(self, trigger: triggers.ReceivedTrigger) -> None:
        if self.owner and not self._freed:
            self.owner.observer.clone_trigger_hit(self.session_id, trigger)

    def _on_duration(self) -> None:
        if self.triggers.mode == triggers.STOP_TRACING and self.triggers.received:
            return  # The session ends after the stop delay of the trigger.
        self.flush_and_disable()

    def flush_and_disable(self) -> None:
        """Flush, then end the session; called when the duration has elapsed."""

        def flushed(success: bool) -> None:
            self.final_flush_outcome = FINAL_FLUSH_SUCCEEDED if success else FINAL_FLUSH_FAILED
            if self.owner:
                self.disable()
            else:
                self.free()

        if self.started:
            self.flushes.start(0, TRACE_STOP, flushed)

    def disable(self, *, immediate: bool = False) -> None:
        """Stop all data sources; the session ends after their confirmations.

        Args:
            immediate: Whether to end without waiting for confirmations.
        """
        if not self.active or (self.state == DISABLING_WAITING_STOP_ACKS and not immediate):
            return
        self.instances.stop(immediate=immediate or self.state == CONFIGURED)
        self.timers.cancel("snapshot")
        if self.instances.all_stopped:
            self._finalize()
        else:
            self._move_to(DISABLING_WAITING_STOP_ACKS)
            self.timers.once("stop", self.stop_timeout_ms, self._finalize)

    def on_data_source_stopped(self, producer: SessionProducer, instance_id: int) -> None:
        """Handle the end of an instance, whether it was requested or not."""
        if self.instances.on_stopped(producer, instance_id):
            self._check_all_stopped()

    def _check_all_stopped(self) -> None:
        if self.state == DISABLING_WAITING_STOP_ACKS and self.instances.all_stopped:
            self._finalize()

    def _finalize(self) -> None:
        for name in ("stop", "duration", "flush", "clear", "slow start", "trigger"):
            self.timers.cancel(name)
        self.timers.cancel("trigger timeout")
        self.instances.give_up()
        self._move_to(DISABLED)
        self.scrape()
        self.note(TRACING_DISABLED)
        if self.drain:
            # Producers must stop committing: new data would prolong the last pass.
            self._forbid_buffers()
            self._end_due = True
            self.drain.finish(self._on_file_complete)
        else:
            self.report_end()

    def write_file(self, on_complete: Callable[[], object]) -> None:
        """Write the data of a clone into its file."""

        def complete() -> None:
            self._on_file_complete()
            on_complete()

        assert self.drain is not None
        self.drain.finish(complete)

    def _on_file_complete(self) -> None:
        assert self.drain is not None
        if self.drain.error:
            self.note_error(self.drain.error)
        if self._freed:
            self.host.on_file_complete(self.session_id)
        self._report_end_if_due()

    def _report_end_if_due(self) -> None:
        due, self._end_due = self._end_due, False
        if due:
            self.report_end()

    @property
    def complete(self) -> bool:
        """Whether the session has ended, and its file, if it has one, is complete."""
        return not self.active and (self.drain is None or self.drain.complete)

    def report_end(self) -> None:
        """Report the end of the session to its consumer, if any."""
        if self.owner:
            self.owner.on_tracing_disabled(self._error)

    def note_error(self, error: str) -> None:
        """Store the error for the consumer, unless there is one already."""
        self._error = self._error or error

    def fail(self, error: str) -> None:
        """End the session because of `error`."""
        self.note_error(error)
        self.disable()

    def abort(self, error: str) -> None:
        """Free the session at once because of `error`; its data is lost."""
        self.note_error(error)
        self.free()

    def free(self) -> None:
        """End the session at once and free its resources.

        Data for the session's file is kept until it is written.
        """
        if self._freed:
            return
        self._freed = True
        self.disable(immediate=True)
        for clone in self.clones[:]:
            clone.fail("Original session ended")
        self._forbid_buffers()
        self.instances.clear()
        self.flushes.abandon()
        self.timers.cancel_all()
        # Report the end now: after `forget_session`, only the registry waits for the file.
        self._report_end_if_due()
        self.host.forget_session(self.session_id)
        if self.owner:
            self.owner.forget_session()
            self.owner = None

    def become_clone(self, copy_state: Callable[[ServiceTracingSession], object]) -> None:
        """Make a new session a read-only clone; `copy_state` copies the state of the source."""
        copy_state(self)
        self._move_to(CLONED_READ_ONLY)

    def _forbid_buffers(self) -> None:
        for producer in self.host.producers():
            producer.forbid_buffers(self.buffers)

    def scrape(self) -> None:
        """Copy uncommitted chunks of all producers into the buffers."""
        for producer in self.host.producers():
            producer.scrape(self.buffers)

    def remove_data_source(self, source: RegisteredDataSource) -> None:
        """Handle the end of a data source, which may have an instance in this session."""
        self.instances.remove(source)
        self.check_all_started()
        self._check_all_stopped()


# Most recordings have none of these parts, so their modules are imported when they are needed.


def _file_drain(session: ServiceTracingSession, fd: int) -> FileDrain:
    from stretto.service.output.file_drain import FileDrain
    from stretto.service.output.output_file import OutputFile

    file = OutputFile(fd, interruptible=True)
    return FileDrain(session, file, session.config.max_file_size_bytes)


def _concurrent_sessions(
    builtin: TraceConfig.BuiltinDataSource, clock: Clock
) -> ConcurrentSessions | None:
    if not builtin.enable_concurrent_session_events:
        return None
    from stretto.service.output.concurrent_sessions import ConcurrentSessions

    return ConcurrentSessions(clock)


def _compressor(config: TraceConfig) -> Compressor | None:
    if config.compression is None and not config.compression_type:
        return None
    from stretto.service.output.compressor import make_compressor

    return make_compressor(config)
