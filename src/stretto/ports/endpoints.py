"""Both sides of every port, as interfaces.

The tracing service, the client library and the socket adapters meet only here.
A *producer* offers data sources and writes trace data; the service calls it
back. Inside one process the service's endpoint object is used directly; over a
socket an adapter with the same methods stands on each side::

    client  --ProducerEndpoint-->  service            in process
    client  --ProducerEndpoint-->  frames  -->  service    over a socket
    client  <--Producer----------  frames  <--  service

Callbacks arrive on the task runner of the object's owner, in the order
`on_connect`, `on_tracing_setup`, `setup_data_source`, `start_data_source`,
(`flush` | `clear_incremental_state`)*, `stop_data_source`, `on_disconnect`.
A producer must accept a start without a setup, and a stop of an unknown
instance.

Trace data itself does not pass through these objects: see `stretto._native`.
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
    """What the service calls on a producer."""

    def on_connect(self) -> None: ...
    def on_disconnect(self) -> None: ...
    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        """Shared memory exists from now on; `arbiter` hands out its chunks."""

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...
    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None: ...
    def stop_data_source(self, instance_id: int) -> None: ...
    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        """Commit what the instances hold, then `notify_flush_complete(request_id)`."""

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None: ...


class ProducerEndpoint(Protocol):
    """What a producer calls on the service."""

    def register_data_source(self, descriptor: DataSourceDescriptor) -> None: ...
    def update_data_source(self, descriptor: DataSourceDescriptor) -> None: ...
    def unregister_data_source(self, name: str) -> None: ...
    def notify_flush_complete(self, request_id: int) -> None: ...
    def notify_data_source_started(self, instance_id: int) -> None: ...
    def notify_data_source_stopped(self, instance_id: int) -> None: ...
    def activate_triggers(self, names: Sequence[str]) -> None: ...
    def sync(self, callback: Callable[[], None]) -> None:
        """Call back once the service has handled everything sent before."""

    def disconnect(self) -> None: ...


class OutOfProcessProducer(Producer, Protocol):
    """A producer in another process, as the service sees it (the service's side of the port)."""

    def on_shared_memory(self, fd: int, size_bytes: int, page_size_bytes: int) -> None:
        """Called instead of `on_tracing_setup`: pass the memory on. `fd` stays the service's;
        it is -1 where none is needed: the producer has brought its own, or emulates it."""


class RemoteProducerEndpoint(ProducerEndpoint, Protocol):
    """The service's endpoint for a producer behind a socket: as the port calls it."""

    core: _native.ProducerEndpointCore
    producer_provided_shm: bool
    """Whether the memory offered by the producer is used."""

    def register_encoded_data_source(self, descriptor: bytes) -> None:
        """`register_data_source` with a DataSourceDescriptor as its producer has encoded it.

        Raises:
            DecodeError: It is malformed.
        """

    def update_encoded_data_source(self, descriptor: bytes) -> None:
        """`update_data_source`, likewise."""

    def on_commit(self, flush_request_id: int) -> None:
        """`core` has handled CommitData; `flush_request_id` is 0 if it carried none."""

    def register_trace_writer(self, writer_id: int, target_buffer: int) -> None: ...
    def unregister_trace_writer(self, writer_id: int) -> None: ...


class Consumer(Protocol):
    """What the service calls on a consumer."""

    def on_connect(self) -> None: ...
    def on_disconnect(self) -> None: ...
    def on_tracing_disabled(self, error: str) -> None:
        """The session ended; `error` is empty if it ended well."""

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        """Trace bytes: packets, each with its `0a` and length."""


class ConsumerEndpoint(Protocol):
    """What a consumer calls on the service. One consumer, at most one session.

    Requests with an answer take a callback; it is called as a task, once, and never after
    `on_disconnect`.

    Attributes:
        error: Why the connection has ended; empty if this consumer ended it.
    """

    error: str

    def enable_tracing(self, config: bytes, fd: int | None = None) -> None:
        """Set up a session from an encoded TraceConfig, and start it unless
        `deferred_start`. Errors arrive through `on_tracing_disabled`."""

    def start_tracing(self) -> None: ...
    def change_trace_config(self, config: bytes) -> None:
        """Replace the producer filters of the running session's data sources."""

    def disable_tracing(self) -> None: ...
    def flush(self, timeout_ms: int, callback: Callable[[bool], None], flags: int = 0) -> None: ...
    def read_buffers(self) -> None: ...
    def free_buffers(self) -> None: ...
    def detach(self, key: str, callback: Callable[[bool], None]) -> None:
        """Keep the session without this consumer, until one of the same uid attaches by `key`."""

    def attach(self, key: str, callback: Callable[[bytes | None], None]) -> None:
        """Attach to a detached session; the answer is its encoded TraceConfig, or None."""

    def observe_events(self, types: int, callback: Callable[[ObservableEvents], None]) -> None:
        """Report events of the session: `types` are bits of ObservableEvents.Type, 0 ends the
        observation. Replaces an earlier observation."""

    def get_trace_stats(self, callback: Callable[[bytes | None], None]) -> None:
        """The answer is the encoded TraceStats, or None without a session."""

    def query_service_state(
        self, callback: Callable[[TracingServiceState], None], *, sessions_only: bool = False
    ) -> None:
        """The producers, data sources and sessions; `sessions_only` leaves producers out."""

    def query_capabilities(self, callback: Callable[[TracingServiceCapabilities], None]) -> None:
        """The capabilities of the service; empty for a service without this request."""

    def clone_session(
        self,
        request: CloneSessionRequest,
        fd: int | None,
        callback: Callable[[CloneSessionResponse], None],
    ) -> None:
        """Make a copy of another session this consumer's own, to be read and freed.

        A session that writes into a file is copied into `fd`, which stays the caller's."""

    def disconnect(self) -> None: ...


class RemoteConsumerEndpoint(ConsumerEndpoint, Protocol):
    """The service's endpoint for a consumer behind a socket: as the port calls it."""

    def trace_pieces(self) -> Iterator[tuple[bytes, bool]]:
        """Yield (trace bytes, whether more follow) at the pace of the caller, at least once."""

    def encoded_service_state(self, *, sessions_only: bool = False) -> bytes:
        """The result of `query_service_state`, encoded; descriptors are passed on unchanged."""


class RelayEndpoint(Protocol):
    """What the relay of another machine calls on the service."""

    def init_relay(self, system_info: bytes) -> None:
        """`system_info`: the other machine's, encoded."""

    def sync_clock(self, clocks: Sequence[tuple[int, int]], *, update: bool) -> None:
        """The other machine's clocks as (id, ns): first a ping, then an update, which gives
        the round-trip time."""

    def disconnect(self) -> None: ...
