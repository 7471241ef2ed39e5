"""The data source instances of one session, from setup to the last confirmation.

Rules:
- An instance is created by the setup, and removed with its data source or with the session.
- A confirmation is accepted only for instances of the producer that sent it.
- Each change of state is reported to the session's observer.
"""

from __future__ import annotations

from stretto.base.c_modules import defaultdict
from stretto.service.session import data_source
from stretto.service.session.config_validation import buffer_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from stretto.protos.config import DataSourceConfig, TraceConfig
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.data_source import DataSourceInstance, RegisteredDataSource
    from stretto.service.session.requested_data_sources import RequestedDataSource
    from stretto.service.session.session_producer import SessionProducer

    class SessionOfInstances(Protocol):
        """The members of a session that its instances use."""

        context: ServiceContext
        config: TraceConfig
        session_id: int
        buffers: list[int]
        duration_ms: int

        @property
        def started(self) -> bool: ...
        @property
        def stop_timeout_ms(self) -> int: ...


class Instances:
    """The instances of a session, in the order in which they were set up."""

    def __init__(
        self, session: SessionOfInstances, on_state: Callable[[DataSourceInstance], object]
    ) -> None:
        """Create an empty list; `on_state` is called with each instance that enters a state."""
        self._session = session
        self._on_state = on_state
        self._by_id: dict[int, DataSourceInstance] = {}
        self._by_source: dict[RegisteredDataSource, list[DataSourceInstance]] = {}
        self._names: defaultdict[tuple[SessionProducer, str], int] = defaultdict(int)
        self._in_state: defaultdict[int, int] = defaultdict(int)

    def __iter__(self) -> Iterator[DataSourceInstance]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, source: RegisteredDataSource, requested: RequestedDataSource) -> None:
        """Set up `source` for an entry of the config; start it if the session has started."""
        session = self._session
        if not source.producer.ensure_shared_memory(session.config):
            return
        buffer_id = session.buffers[buffer_index(requested.config, session.config)]
        source.producer.allow_buffer(buffer_id)
        key = (session.duration_ms, buffer_id)
        config = requested.config_for_producers(
            key, lambda: self._make_config(requested, buffer_id)
        )
        instance_id = session.context.next_instance_id()
        instance = data_source.DataSourceInstance(instance_id, source, config, self._moved)
        self._by_id[instance_id] = instance
        self._by_source.setdefault(source, []).append(instance)
        self._names[source.producer, source.name] += 1
        self._in_state[instance.state] += 1
        instance.set_up()
        if session.started:
            instance.start()

    def _make_config(self, requested: RequestedDataSource, buffer_id: int) -> DataSourceConfig:
        session = self._session
        return data_source.config_for_producer(
            requested.config,
            session.config,
            duration_ms=session.duration_ms,
            session_id=session.session_id,
            buffer_id=buffer_id,
            stop_ms=session.stop_timeout_ms,
        )

    def start(self) -> None:
        """Start all instances."""
        for instance in self:
            instance.start()

    def stop(self, *, immediate: bool) -> None:
        """Stop all instances; with `immediate`, without waiting for confirmations."""
        for instance in self:
            instance.stop(immediate=immediate)

    def give_up(self) -> None:
        """Treat all instances as stopped."""
        for instance in self:
            instance.move_to(data_source.STOPPED)

    @property
    def all_started(self) -> bool:
        return self._in_state[data_source.STARTED] == len(self)

    @property
    def all_stopped(self) -> bool:
        return self._in_state[data_source.STOPPED] == len(self)

    def starting(self) -> list[tuple[str, str]]:
        """Return (producer, data source) of the instances whose start is not confirmed."""
        return [each.label for each in self if each.state == data_source.STARTING]

    def on_started(self, producer: SessionProducer, instance_id: int) -> bool:
        """Handle the confirmation of a start; return whether it was expected."""
        instance = self._find(producer, instance_id)
        if instance is None or instance.state != data_source.STARTING:
            return False
        instance.move_to(data_source.STARTED)
        return True

    def on_stopped(self, producer: SessionProducer, instance_id: int) -> bool:
        """Handle the end of an instance; return False if there is no such instance."""
        instance = self._find(producer, instance_id)
        if instance is None:
            return False
        instance.move_to(data_source.STOPPED)
        return True

    def _find(self, producer: SessionProducer, instance_id: int) -> DataSourceInstance | None:
        instance = self._by_id.get(instance_id)
        return instance if instance is not None and instance.producer is producer else None

    def has(self, producer: SessionProducer, name: str) -> bool:
        """Whether `producer` has an instance of a data source of this name."""
        return (producer, name) in self._names

    def remove(self, source: RegisteredDataSource) -> None:
        """End and remove the instances of an unregistered data source."""
        for instance in self._by_source.pop(source, ()):
            instance.stop(immediate=True)
            del self._by_id[instance.instance_id]
            self._in_state[instance.state] -= 1
            self._names[source.producer, source.name] -= 1
            if not self._names[source.producer, source.name]:
                del self._names[source.producer, source.name]

    def clear(self) -> None:
        """Remove all instances."""
        for index in (self._by_id, self._by_source, self._names, self._in_state):
            index.clear()

    def _moved(self, instance: DataSourceInstance, before: int) -> None:
        self._in_state[before] -= 1
        self._in_state[instance.state] += 1
        self._on_state(instance)
