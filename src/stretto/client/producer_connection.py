"""One connection of this process to one tracing service, as a producer.

The connection makes the data source instances that the service sets up, and passes the service's
commands to them. Callbacks run on a tracing thread of the backend, one at a time.
"""

from __future__ import annotations

from stretto.client.safe_call import call_safely
from stretto.client.triggers import WaitingTriggers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto import _native
    from stretto.client.data_source import DataSource
    from stretto.client.startup_tracing import StartupTracing, StartupTracingSession
    from stretto.ports.endpoints import ProducerEndpoint
    from stretto.protos.config import DataSourceConfig


class ProducerConnection:
    """A producer (ports.endpoints.Producer) whose data sources are classes of this process."""

    def __init__(self, data_sources: Sequence[type[DataSource]]) -> None:
        self.endpoint: ProducerEndpoint | None = None
        self.will_update = False
        self.on_gone: Callable[[], object] | None = None
        """Called after the service has disconnected and all instances have ended."""
        self._types = {source.name: source for source in data_sources}
        self._connected = False
        self._offered: dict[str, object] = {}
        self._stop_silently: set[str] = set()
        self.arbiter: _native.Arbiter | None = None
        self._triggers = WaitingTriggers()
        self._instances: dict[int, DataSource] = {}
        self.startup: StartupTracing | None = None
        """The startup sessions of this producer; None before the first one."""

    @property
    def instances(self) -> list[DataSource]:
        """The data sources that sessions of the service have set up."""
        return [*self._instances.values()]

    def attach(self, endpoint: ProducerEndpoint) -> None:
        """Use this endpoint of a service; register the data sources when it is connected."""
        self._connected, self._offered, self.will_update = False, {}, False
        self.endpoint = endpoint

    def add_data_source(self, source: type[DataSource]) -> None:
        """Register one more data source."""
        self._types[source.name] = source
        if self._connected:
            self._offer(source)

    def update_data_source(self, source: type[DataSource]) -> None:
        """Send a changed descriptor to the service."""
        self.will_update = False
        if self.endpoint is not None and source.name in self._types:
            self.endpoint.update_data_source(source.descriptor())

    def activate_triggers(self, names: Sequence[str], ttl_ms: float) -> None:
        """Activate triggers now, or when a connection is made within `ttl_ms`."""
        self._triggers.add(names, ttl_ms)
        if self._connected and self.endpoint is not None:
            self._triggers.take()
            self.endpoint.activate_triggers(names)

    def setup_startup_tracing(
        self,
        session: StartupTracingSession,
        configs: Sequence[DataSourceConfig],
        timeout_ms: float,
        now_ns: Callable[[], int],
    ) -> bool:
        """Start recording before a service sets up the data sources.

        Args:
            session: The startup session.
            configs: Configs of the data sources to start; unregistered data sources are left out.
            timeout_ms: How long to wait for a service, in ms.
            now_ns: The clock of the time-out.

        Returns:
            True if a new connection has to offer the `startup` memory.

        Raises:
            TransportError: The memory could not be allocated.
        """
        if self.startup is None:
            from stretto.client.startup_tracing import StartupTracing

            self.startup = StartupTracing(now_ns)
        sources = [(self._types[c.name], c) for c in configs if c.name in self._types]
        before, arbiter = self.startup.memory, self.arbiter
        self.startup.begin(session, sources, arbiter, timeout_ms)
        if arbiter is not None and self.arbiter is not arbiter:
            self.startup.end_all(arbiter)  # The service has disconnected meanwhile.
        return self.startup.memory is not before

    def stop(self) -> None:
        """End all instances. The connection is still open, so their last packets arrive."""
        for instance_id in list(self._instances):
            self._end(instance_id)

    def abandon(self) -> None:
        """Drop all state in the child of a fork: it belongs to the parent."""
        for instance in self._instances.values():
            instance.forget()
        self._instances.clear()
        if self.startup is not None:
            self.startup.forget()
        self.endpoint = self.arbiter = None

    # --- called by the service

    def on_connect(self) -> None:
        """Register all data sources."""
        # Set `_connected` before the loop: if another thread adds a data source now, that
        # thread registers it.
        self._connected = True
        for source in list(self._types.values()):
            self._offer(source)
        if self.endpoint is not None and (names := self._triggers.take()):
            self.endpoint.activate_triggers(names)

    def _offer(self, source: type[DataSource]) -> None:
        """Register a data source, once per connection even if two threads call this."""
        this = object()
        if self._offered.setdefault(source.name, this) is this and self.endpoint is not None:
            descriptor = source.descriptor()
            if not descriptor.will_notify_on_stop:
                self._stop_silently.add(source.name)
            self.endpoint.register_data_source(descriptor)

    def on_disconnect(self) -> None:
        """End all instances: the service has disconnected."""
        self._connected = False
        # First, so that a startup session of another thread doesn't use this arbiter any more.
        arbiter, self.endpoint, self.arbiter = self.arbiter, None, None
        self.stop()
        if arbiter is not None:
            arbiter.disable()
            if self.startup is not None:
                self.startup.end_all(arbiter)
        if self.on_gone is not None:
            self.on_gone()

    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        self.arbiter = arbiter

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        source = self._types.get(config.name)
        if source is None or self.arbiter is None or instance_id in self._instances:
            return
        if self.startup is None or not self._adopt(source, instance_id, config):
            instance = source()
            self._instances[instance_id] = instance
            instance.set_up(instance_id, config, self.arbiter, config.target_buffer)

    def _adopt(self, source: type[DataSource], instance_id: int, config: DataSourceConfig) -> bool:
        """Let the service control a matching startup tracing instance; False if there is none."""

        def keep(instance: DataSource) -> None:
            instance.instance_id, instance.config = instance_id, config
            self._instances[instance_id] = instance

        assert self.startup is not None
        assert self.arbiter is not None
        return self.startup.adopt(source, config, self.arbiter, keep)

    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        if instance_id not in self._instances:  # Services before Android Q send no setup.
            self.setup_data_source(instance_id, config)
        instance = self._instances.get(instance_id)
        if instance is None:
            return
        call_safely(instance.begin)
        if self.endpoint is not None:
            self.endpoint.notify_data_source_started(instance_id)

    def stop_data_source(self, instance_id: int) -> None:
        instance = self._instances.get(instance_id)
        silent = instance is not None and instance.name in self._stop_silently
        del instance  # `_end` must delete the last reference, before the arbiter is flushed.
        self._end(instance_id)
        if self.arbiter is not None:
            self.arbiter.flush()
        if self.endpoint is not None and not silent:
            self.endpoint.notify_data_source_stopped(instance_id)

    def _end(self, instance_id: int) -> None:
        instance = self._instances.pop(instance_id, None)
        if instance is None:
            return
        call_safely(instance.end)
        arbiter, target_buffer = instance.arbiter, instance.target_buffer
        del instance  # The instance's writers are deleted with the last reference to the instance.
        arbiter.close_buffer(target_buffer)

    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        for instance_id in instance_ids:
            instance = self._instances.get(instance_id)
            if instance is not None:
                instance.flush_flags = flags
                call_safely(instance.on_flush)
        if self.endpoint is not None:
            self.endpoint.notify_flush_complete(request_id)

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None:
        for instance_id in instance_ids:
            instance = self._instances.get(instance_id)
            if instance is not None:
                call_safely(instance.on_clear_incremental_state)
