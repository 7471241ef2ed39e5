"""Data sources: what a producer offers, and what runs of it in a session."""

from __future__ import annotations

from stretto.protos.config import DataSourceConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from stretto.protos.config import DataSourceDescriptor, TraceConfig
    from stretto.service.producer_endpoint import ProducerEndpoint

# States of an instance.
CONFIGURED: Final = 0
STARTING: Final = 1
STARTED: Final = 2
STOPPING: Final = 3
STOPPED: Final = 4

_LOCAL_MACHINE = "host"


class RegisteredDataSource:
    """A data source that a producer offers."""

    __slots__ = ("descriptor", "producer")

    def __init__(self, producer: ProducerEndpoint, descriptor: DataSourceDescriptor) -> None:
        self.producer = producer
        self.descriptor = descriptor

    @property
    def name(self) -> str:
        return self.descriptor.name

    def matches(self, source: TraceConfig.DataSource) -> bool:
        """Whether an entry of a config wants this data source of this producer."""
        config = source.config
        return (
            config is not None
            and config.name == self.name
            and _machine_matches(source)
            and _producer_matches(source, self.producer.name)
        )


def _machine_matches(source: TraceConfig.DataSource) -> bool:
    # All producers are local until relays exist; without a filter local ones are meant.
    filters = source.machine_name_filter
    return not filters or _LOCAL_MACHINE in filters


def _producer_matches(source: TraceConfig.DataSource, name: str) -> bool:
    exact, patterns = source.producer_name_filter, source.producer_name_regex_filter
    if not exact and not patterns:
        return True
    return name in exact or any(_full_match(pattern, name) for pattern in patterns)


def _full_match(pattern: str, name: str) -> bool:
    import re

    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:  # A filter that can't be read selects nothing.
        return False


class DataSourceInstance:
    """A data source of one producer in one session."""

    __slots__ = ("config", "instance_id", "source", "state")

    def __init__(
        self, instance_id: int, source: RegisteredDataSource, config: DataSourceConfig
    ) -> None:
        self.instance_id = instance_id
        self.source = source
        self.config = config
        self.state = CONFIGURED

    @property
    def producer(self) -> ProducerEndpoint:
        return self.source.producer

    @property
    def label(self) -> tuple[str, str]:
        """(producer name, data source name), as service events list it."""
        return self.producer.name, self.source.name

    def set_up(self) -> None:
        """Tell the producer to prepare."""
        self.producer.setup_data_source(self.instance_id, self.config)

    def start(self) -> None:
        """Tell the producer to start; it may have to confirm."""
        self.state = STARTING if self.source.descriptor.will_notify_on_start else STARTED
        self.producer.start_data_source(self.instance_id, self.config)

    def stop(self, *, immediate: bool) -> None:
        """Tell the producer to stop; unless `immediate`, it may have to confirm."""
        if self.state in (STOPPING, STOPPED):
            self.state = STOPPED if immediate else self.state
            return
        waits = self.source.descriptor.will_notify_on_stop and not immediate
        self.state = STOPPING if waits else STOPPED
        self.producer.stop_data_source(self.instance_id)


def config_for_producer(
    source: DataSourceConfig, trace: TraceConfig, session_id: int, buffer_id: int, stop_ms: int
) -> DataSourceConfig:
    """The config as the producer gets it: a copy, with the fields that only the service sets."""
    config = DataSourceConfig.decode(source.encode())
    config.target_buffer = buffer_id
    config.trace_duration_ms = trace.duration_ms
    config.tracing_session_id = session_id
    config.enable_extra_guardrails = trace.enable_extra_guardrails
    config.stop_timeout_ms = stop_ms
    config.session_initiator = 0
    if trace.prefer_suspend_clock_for_duration:
        # Written only if true: older clients compare the config of a startup session.
        config.prefer_suspend_clock_for_duration = True
    return config
