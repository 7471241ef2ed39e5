"""Data sources: what a producer offers, and what runs of it in a session."""

from __future__ import annotations

from stretto.protos.config import DataSourceConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from stretto.protos.config import DataSourceDescriptor, TraceConfig
    from stretto.service.producer_endpoint import ProducerEndpoint

# States of an instance.
CONFIGURED: Final = 0
STARTING: Final = 1
STARTED: Final = 2
STOPPING: Final = 3
STOPPED: Final = 4

_HOST: Final = "host"
"""Selects the machine of the service in a `machine_name_filter`, whatever its name."""


class RegisteredDataSource:
    """A data source that a producer offers."""

    __slots__ = ("descriptor", "producer")

    def __init__(self, producer: ProducerEndpoint, descriptor: DataSourceDescriptor) -> None:
        self.producer = producer
        self.descriptor = descriptor

    @property
    def name(self) -> str:
        return self.descriptor.name

    def matches(self, entry: TraceConfig.DataSource, *, all_machines: bool) -> bool:
        """Whether an entry of a config wants this data source of this producer.

        Args:
            entry: One of the config's `data_sources`.
            all_machines: Whether an entry that names no machine means all of them.
        """
        config = entry.config
        return (
            config is not None
            and config.name == self.name
            and _machine_matches(entry, self.producer, all_machines)
            and _producer_matches(entry, self.producer.name)
        )


def _machine_matches(
    entry: TraceConfig.DataSource, producer: ProducerEndpoint, all_machines: bool
) -> bool:
    names = entry.machine_name_filter
    if not names:
        return all_machines or not producer.machine_id
    return producer.machine_name in names or (not producer.machine_id and _HOST in names)


def _producer_matches(source: TraceConfig.DataSource, name: str) -> bool:
    exact, patterns = source.producer_name_filter, source.producer_name_regex_filter
    if not exact and not patterns:
        return True
    return name in exact or any(full_match(pattern, name) for pattern in patterns)


def full_match(pattern: str, name: str) -> bool:
    """Whether the whole of `name` matches a regular expression of a config."""
    import re

    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:  # A filter that can't be read selects nothing.
        return False


class DataSourceInstance:
    """A data source of one producer in one session."""

    __slots__ = ("_on_state", "config", "instance_id", "source", "state")

    def __init__(
        self,
        instance_id: int,
        source: RegisteredDataSource,
        config: DataSourceConfig,
        on_state: Callable[[DataSourceInstance], object],
    ) -> None:
        """`on_state` is told of each new state."""
        self.instance_id = instance_id
        self.source = source
        self.config = config
        self.state = CONFIGURED
        self._on_state = on_state

    @property
    def producer(self) -> ProducerEndpoint:
        return self.source.producer

    @property
    def label(self) -> tuple[str, str]:
        """(producer name, data source name), as service events list it."""
        return self.producer.name, self.source.name

    def move_to(self, state: int) -> None:
        """Enter a state; whoever wants to know is told."""
        if state != self.state:
            self.state = state
            self._on_state(self)

    def set_up(self) -> None:
        """Tell the producer to prepare."""
        self.producer.setup_data_source(self.instance_id, self.config)

    def start(self) -> None:
        """Tell the producer to start; it may have to confirm."""
        self.move_to(STARTING if self.source.descriptor.will_notify_on_start else STARTED)
        self.producer.start_data_source(self.instance_id, self.config)

    def stop(self, *, immediate: bool) -> None:
        """Tell the producer to stop; unless `immediate`, it may have to confirm."""
        if self.state in (STOPPING, STOPPED):
            if immediate:
                self.move_to(STOPPED)
            return
        waits = self.source.descriptor.will_notify_on_stop and not immediate
        self.move_to(STOPPING if waits else STOPPED)
        self.producer.stop_data_source(self.instance_id)


def config_for_producer(
    source: DataSourceConfig,
    trace: TraceConfig,
    *,
    duration_ms: int,
    session_id: int,
    buffer_id: int,
    stop_ms: int,
) -> DataSourceConfig:
    """The config as the producer gets it: a copy, with the fields that only the service sets."""
    config = DataSourceConfig.decode(source.encode())
    config.target_buffer = buffer_id
    config.trace_duration_ms = duration_ms
    config.tracing_session_id = session_id
    config.enable_extra_guardrails = trace.enable_extra_guardrails
    config.stop_timeout_ms = stop_ms
    config.session_initiator = 0
    if trace.prefer_suspend_clock_for_duration:
        # Written only if true: older clients compare the config of a startup session.
        config.prefer_suspend_clock_for_duration = True
    return config
