"""The interfaces of producers, consumers and relays, and of the service's endpoints for them.

These interfaces decouple the tracing service, the client library and the socket adapters. A
*producer* offers data sources and writes trace data; the service calls its callbacks. Within a
process the client calls the service's endpoint directly. Over a socket, each side has an adapter
with the same methods::

    client  --ProducerEndpoint-->  service            in process
    client  --ProducerEndpoint-->  frames  -->  service    over a socket
    client  <--Producer----------  frames  <--  service

Callbacks run on the task runner of the object's owner, in the order `on_connect`,
`on_tracing_setup`, `setup_data_source`, `start_data_source`, (`flush` |
`clear_incremental_state`)*, `stop_data_source`, `on_disconnect`. A producer must accept a start
without a setup, and a stop of an unknown instance.

Trace data is not passed through these objects: see `stretto._native`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stretto import _native
    from stretto.protos.config import DataSourceConfig, DataSourceDescriptor
    from stretto.protos.ipc import (
        CloneSessionRequest,
        CloneSessionResponse,
        ObservableEvents,
        TracingServiceCapabilities,
    )
    from stretto.protos.trace import TracingServiceState


class Producer(Protocol):
    """The interface of a producer: called by the service."""

    def on_connect(self) -> None: ...
    def on_disconnect(self) -> None: ...
    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        """Called when shared memory is available; `arbiter` allocates its chunks."""

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...
    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...
    def stop_data_source(self, instance_id: int) -> None: ...
    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        """Commit the data of the instances, then call `notify_flush_complete(request_id)`."""

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None: ...


class ProducerEndpoint(Protocol):
    """The interface through which a producer uses the service."""

    def register_data_source(self, descriptor: DataSourceDescriptor) -> None: ...
    def update_data_source(self, descriptor: DataSourceDescriptor) -> None: ...
    def unregister_data_source(self, name: str) -> None: ...
    def notify_flush_complete(self, request_id: int) -> None: ...
    def notify_data_source_started(self, instance_id: int) -> None: ...
    def notify_data_source_stopped(self, instance_id: int) -> None: ...
    def activate_triggers(self, names: Sequence[str]) -> None: ...
    def sync(self, callback: Callable[[], None]) -> None:
        """Call back after the service has handled all earlier requests."""

    def disconnect(self) -> None: ...


class OutOfProcessProducer(Producer, Protocol):
    """The interface of a producer in another process: called by the service."""

    def on_shared_memory(self, fd: int, size_bytes: int, page_size_bytes: int) -> None:
        """Send the shared memory to the producer; called instead of `on_tracing_setup`.

        Args:
            fd: Descriptor of the memory; owned by the service. -1 if the producer provided the
                memory, or if no memory is shared.
            size_bytes: Size of the memory.
            page_size_bytes: Size of a page.
        """


class RemoteProducerEndpoint(ProducerEndpoint, Protocol):
    """The interface through which a producer behind a socket uses the service."""

    core: _native.ProducerEndpointCore
    producer_provided_shm: bool
    """Whether the service uses the memory that the producer offered."""

    def register_encoded_data_source(self, descriptor: bytes) -> None:
        """Register a data source by its encoded DataSourceDescriptor.

        Raises:
            DecodeError: The descriptor is malformed.
        """

    def update_encoded_data_source(self, descriptor: bytes) -> None:
        """Update a data source by its encoded DataSourceDescriptor.

        Raises:
            DecodeError: The descriptor is malformed.
        """

    def on_commit(self, flush_request_id: int) -> None:
        """Called after `core` has handled a commit; an id above 0 acknowledges a flush."""

    def register_trace_writer(self, writer_id: int, target_buffer: int) -> None: ...
    def unregister_trace_writer(self, writer_id: int) -> None: ...


class Consumer(Protocol):
    """The interface of a consumer: called by the service."""

    def on_connect(self) -> None: ...
    def on_disconnect(self) -> None: ...
    def on_tracing_disabled(self, error: str) -> None:
        """Called when the session has ended; `error` is empty if it succeeded."""

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        """Called with trace bytes: packets, each with its tag `0a` and length."""


class ConsumerEndpoint(Protocol):
    """The interface through which a consumer, with at most one session, uses the service.

    Callbacks run as tasks, at most once, and never after `on_disconnect`.

    Attributes:
        error: Why the connection has ended; empty if this consumer ended it.
    """

    error: str

    def enable_tracing(self, config: bytes, fd: int | None = None) -> None:
        """Set up a session from an encoded TraceConfig, and start it unless it has
        `deferred_start`. Errors are reported by `on_tracing_disabled`.
        """

    def start_tracing(self) -> None: ...
    def change_trace_config(self, config: bytes) -> None:
        """Replace the producer filters of the running session's data sources."""

    def disable_tracing(self) -> None: ...
    def flush(self, timeout_ms: int, callback: Callable[[bool], None], flags: int = 0) -> None: ...
    def read_buffers(self) -> None: ...
    def free_buffers(self) -> None: ...
    def detach(self, key: str, callback: Callable[[bool], None]) -> None:
        """Detach the session, until a consumer of the same user attaches it by `key`."""

    def attach(self, key: str, callback: Callable[[bytes | None], None]) -> None:
        """Attach a detached session; call back with its encoded TraceConfig, or None."""

    def observe_events(self, types: int, callback: Callable[[ObservableEvents], None]) -> None:
        """Call back with events of the session; replaces the previous callback.

        Args:
            types: Bits of ObservableEvents.Type; 0 to stop.
            callback: Called with events.
        """

    def get_trace_stats(self, callback: Callable[[bytes | None], None]) -> None:
        """Call back with the encoded TraceStats; None without a session."""

    def query_service_state(
        self, callback: Callable[[TracingServiceState], None], *, sessions_only: bool = False
    ) -> None:
        """Call back with the service's state; with `sessions_only`, only with its sessions."""

    def query_capabilities(self, callback: Callable[[TracingServiceCapabilities], None]) -> None:
        """Call back with the service's capabilities; empty if it doesn't support the request."""

    def clone_session(
        self,
        request: CloneSessionRequest,
        fd: int | None,
        callback: Callable[[CloneSessionResponse], None],
    ) -> None:
        """Clone another session; the clone becomes this consumer's session.

        Args:
            request: Selects the session.
            fd: Output file if that session writes into a file; owned by the caller.
            callback: Called with the result.
        """

    def disconnect(self) -> None: ...


class RemoteConsumerEndpoint(ConsumerEndpoint, Protocol):
    """The interface through which a consumer behind a socket uses the service."""

    def trace_pieces(self) -> Iterator[tuple[bytes, bool]]:
        """Yield (trace bytes, whether more bytes follow) at least once.

        Each step of the iterator reads one piece from the buffers."""

    def encoded_service_state(self, *, sessions_only: bool = False) -> bytes:
        """Return the encoded service state. It contains descriptors as producers sent them."""


class RelayEndpoint(Protocol):
    """The interface through which a relay of another machine uses the service."""

    def init_relay(self, system_info: bytes) -> None:
        """Store the encoded SystemInfo of the other machine."""

    def sync_clock(self, clocks: Sequence[tuple[int, int]], *, update: bool) -> None:
        """Store the other machine's clocks as (id, ns).

        A first call with `update` false and a second one with `update` true measure the round-trip
        time.
        """

    def disconnect(self) -> None: ...
