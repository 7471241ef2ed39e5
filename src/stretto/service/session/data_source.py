"""Data sources of producers, and their instances in sessions."""

from __future__ import annotations

from stretto.ports.data_source_descriptor import DescriptorHeader
from stretto.protos.config import DataSourceConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from stretto.protos.config import TraceConfig
    from stretto.service.session.session_producer import SessionProducer

# The states of an instance.
CONFIGURED: Final = 0
STARTING: Final = 1
STARTED: Final = 2
STOPPING: Final = 3
STOPPED: Final = 4


class RegisteredDataSource:
    """A data source that a producer has registered.

    Attributes:
        descriptor: The descriptor as encoded by the producer, forwarded to consumers unchanged.
        header: The fields of the descriptor that the service uses.
    """

    __slots__ = ("descriptor", "header", "producer")

    def __init__(self, producer: SessionProducer, descriptor: bytes) -> None:
        """Decode the header of the descriptor. Raises DecodeError."""
        self.producer = producer
        self.descriptor = descriptor
        self.header = DescriptorHeader(descriptor)

    @property
    def name(self) -> str:
        return self.header.name

    def update(self, descriptor: bytes, header: DescriptorHeader) -> None:
        """Replace the descriptor by another one of the same name."""
        self.descriptor = descriptor
        self.header = header


class DataSourceInstance:
    """An instance: a data source of one producer in one session."""

    __slots__ = ("_on_state", "config", "instance_id", "source", "state")

    def __init__(
        self,
        instance_id: int,
        source: RegisteredDataSource,
        config: DataSourceConfig,
        on_state: Callable[[DataSourceInstance, int], object],
    ) -> None:
        """Create an instance; `on_state` is called after each change, with the previous state."""
        self.instance_id = instance_id
        self.source = source
        self.config = config
        self.state = CONFIGURED
        self._on_state = on_state

    @property
    def producer(self) -> SessionProducer:
        return self.source.producer

    @property
    def label(self) -> tuple[str, str]:
        """The names of the producer and the data source, for service events."""
        return self.producer.name, self.source.name

    def move_to(self, state: int) -> None:
        """Set the state and report a change."""
        before = self.state
        if state != before:
            self.state = state
            self._on_state(self, before)

    def set_up(self) -> None:
        """Send the producer the setup command."""
        self.producer.setup_data_source(self.instance_id, self.config)

    def start(self) -> None:
        """Send the producer the start command; wait for its confirmation if it sends one."""
        self.move_to(STARTING if self.source.header.will_notify_on_start else STARTED)
        self.producer.start_data_source(self.instance_id, self.config)

    def stop(self, *, immediate: bool) -> None:
        """Send the producer the stop command; unless `immediate`, wait for its confirmation."""
        if self.state in (STOPPING, STOPPED):
            if immediate:
                self.move_to(STOPPED)
            return
        waits = self.source.header.will_notify_on_stop and not immediate
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
    """Return the config for producers: a copy with the fields that the service sets."""
    config = DataSourceConfig.decode(source.encode())
    config.target_buffer = buffer_id
    config.trace_duration_ms = duration_ms
    config.tracing_session_id = session_id
    config.enable_extra_guardrails = trace.enable_extra_guardrails
    config.stop_timeout_ms = stop_ms
    config.session_initiator = 0
    if trace.prefer_suspend_clock_for_duration:
        # If the value is False, leave the field unset: older clients compare this config with the
        # config of a startup session, and that config lacks the field.
        config.prefer_suspend_clock_for_duration = True
    return config
