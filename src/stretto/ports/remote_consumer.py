"""The service's side of ConsumerPort: one consumer behind a socket.

    requests      --> the service's endpoint
    notifications <-- the service: the end of the session, observable events
    trace         <-- read from the service as fast as the consumer reads

Rules
- The reply to EnableTracing is sent when its session has ended, or can't begin.
- Large replies (trace, service state) are streams with back-pressure: see
  `ipc.reply_streams`. If a consumer doesn't read its other replies, and its queue gets
  full, it is disconnected: the service never waits.
- A consumer's session ends with its connection, unless the session is detached.
"""

from __future__ import annotations

import os

from stretto.base.errors import RemoteProtocolError
from stretto.ipc.frames import MAX_FRAME_BYTES
from stretto.ipc.host import HostedService
from stretto.ipc.service import Raw
from stretto.ports.consumer_port import CONSUMER_PORT
from stretto.ports.encoded_message import field_bytes, split_message, without_field
from stretto.ports.service_state import split_state
from stretto.ports.trace_slices import pack_slices
from stretto.protos import ipc
from stretto.protos.config import TraceConfig
from stretto.protozero.wire import bytes_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from stretto.base.errors import StrettoError
    from stretto.ipc.host import Deferred, Handler
    from stretto.ipc.reply_streams import ReplyStreams
    from stretto.ipc.service import Message
    from stretto.ports.endpoints import Consumer, RemoteConsumerEndpoint

    class ConnectConsumer(Protocol):
        """The type of `TracingService.connect_consumer`."""

        def __call__(self, consumer: Consumer, uid: int) -> RemoteConsumerEndpoint: ...


MAX_PART_BYTES = MAX_FRAME_BYTES - 128
"""Largest encoded message inside a reply."""

_TRACE_CONFIG = 1
"""Field of EnableTracingRequest and ChangeTraceConfigRequest."""
_CONFIG = _STATS = _STATE = 1
"""Number of the only field in the replies that carry a config, statistics or a state."""
_WRITER_STATS = 18

SHOWN_NAME = 60

_NO_BUGREPORTS = (
    "SaveTraceForBugreport is deprecated. Use CloneSession(kBugreportSessionId) instead."
)


class RemoteConsumer:
    """A consumer behind a socket: implements `Consumer` for the service.

    Args:
        connect: Creates the service's endpoint.
        uid: User id of the consumer.
        streams: Sends large replies.
        on_error: Called with errors about data that can't be sent.

    Attributes:
        take_fd: Returns the descriptor that came with a request, or -1.
    """

    def __init__(
        self,
        connect: ConnectConsumer,
        uid: int,
        streams: ReplyStreams,
        on_error: Callable[[StrettoError], object],
    ) -> None:
        self._streams = streams
        self._on_error = on_error
        self._enabling: Deferred | None = None
        self._ended: str | None = None  # The error of an ended session, until it is reported.
        self._events: Deferred | None = None
        self.take_fd: Callable[[], int] = lambda: -1
        self._endpoint = connect(self, uid)

    @property
    def service(self) -> HostedService:
        """The handlers of the consumer's requests; the connection keeps a reference to them."""
        handlers: dict[str, Handler] = {
            "EnableTracing": self._enable_tracing,
            "ReadBuffers": self._read_buffers,
            "Flush": self._flush,
            "Detach": self._detach,
            "Attach": self._attach,
            "GetTraceStats": self._get_trace_stats,
            "ObserveEvents": self._observe_events,
            "QueryServiceState": self._query_service_state,
            "QueryCapabilities": self._query_capabilities,
            "SaveTraceForBugreport": self._save_trace_for_bugreport,
            "CloneSession": self._clone_session,
        }
        endpoint = self._endpoint
        actions: dict[str, Callable[[Any], object]] = {
            "StartTracing": lambda _: endpoint.start_tracing(),
            "ChangeTraceConfig": lambda request: endpoint.change_trace_config(_config_in(request)),
            "DisableTracing": lambda _: endpoint.disable_tracing(),
            "FreeBuffers": lambda _: endpoint.free_buffers(),
        }
        return HostedService(CONSUMER_PORT, handlers, actions)

    def disconnected(self) -> None:
        """Handle the end of the connection."""
        self._enabling = self._events = None
        self._endpoint.disconnect()

    def _enable_tracing(self, request: Raw, deferred: Deferred) -> None:
        config = _config_in(request)
        other = ipc.EnableTracingRequest.decode(without_field(request.data, _TRACE_CONFIG))
        if self._enabling is not None:
            self._enabling.reject()  # As in Perfetto, only the last request is answered.
        self._enabling = deferred
        if other.attach_notification_only:
            if self._ended is not None:
                self.on_tracing_disabled(self._ended)
            return
        self._ended = None
        self._with_fd(lambda fd: self._endpoint.enable_tracing(config, fd))

    def _with_fd(self, use: Callable[[int | None], object]) -> None:
        fd = self.take_fd()
        try:
            use(fd if fd >= 0 else None)
        finally:
            if fd >= 0:
                os.close(fd)

    def _flush(self, request: ipc.FlushRequest, deferred: Deferred) -> None:
        on_flushed = _reply_on_success(deferred, ipc.FlushResponse())
        self._endpoint.flush(request.timeout_ms, on_flushed, request.flags)

    def _detach(self, request: ipc.DetachRequest, deferred: Deferred) -> None:
        self._endpoint.detach(request.key, _reply_on_success(deferred, ipc.DetachResponse()))

    def _attach(self, request: ipc.AttachRequest, deferred: Deferred) -> None:
        def on_attached(config: bytes | None) -> None:
            if config is None:
                deferred.reject()
            else:
                deferred.resolve(Raw(bytes_field(_CONFIG, config)))

        self._ended = None
        self._endpoint.attach(request.key, on_attached)

    def _clone_session(self, request: ipc.CloneSessionRequest, deferred: Deferred) -> None:
        self._with_fd(lambda fd: self._endpoint.clone_session(request, fd, deferred.resolve))

    def _read_buffers(self, _request: ipc.ReadBuffersRequest, deferred: Deferred) -> None:
        self._streams.add(self._trace_replies(), deferred)

    def _trace_replies(self) -> Iterator[Raw]:
        for data, _has_more in self._endpoint.trace_pieces():
            for reply in pack_slices(data):
                yield Raw(reply)

    def _get_trace_stats(self, _request: ipc.GetTraceStatsRequest, deferred: Deferred) -> None:
        def on_stats(stats: bytes | None) -> None:
            if stats is None:
                deferred.reject()
                return
            if len(stats) > MAX_PART_BYTES:
                # Thousands of writers have more statistics than fit into a frame.
                stats = without_field(stats, _WRITER_STATS)
            deferred.resolve(Raw(bytes_field(_STATS, stats)))

        self._endpoint.get_trace_stats(on_stats)

    def _query_service_state(
        self, request: ipc.QueryServiceStateRequest, deferred: Deferred
    ) -> None:
        state = self._endpoint.encoded_service_state(sessions_only=request.sessions_only)
        parts = split_state(state, MAX_PART_BYTES, self._on_shortened)
        self._streams.add((Raw(bytes_field(_STATE, part)) for part in parts), deferred)

    def _on_shortened(self, name: str, size: int) -> None:
        self._on_error(
            RemoteProtocolError(
                f"the descriptor of data source {name[:SHOWN_NAME]!r} has {size} bytes, which "
                "don't fit into a frame: consumers get only its name and flags"
            )
        )

    def _query_capabilities(
        self, _request: ipc.QueryCapabilitiesRequest, deferred: Deferred
    ) -> None:
        self._endpoint.query_capabilities(
            lambda found: deferred.resolve(ipc.QueryCapabilitiesResponse(capabilities=found))
        )

    def _save_trace_for_bugreport(
        self, _request: ipc.SaveTraceForBugreportRequest, deferred: Deferred
    ) -> None:
        deferred.resolve(ipc.SaveTraceForBugreportResponse(success=False, msg=_NO_BUGREPORTS))

    def _observe_events(self, request: ipc.ObserveEventsRequest, deferred: Deferred) -> None:
        if self._events is not None:
            self._events.resolve(ipc.ObserveEventsResponse())
        self._events = deferred
        types = 0
        for each in request.events_to_observe:
            types |= each
        self._endpoint.observe_events(types, self._on_events)
        if not request.events_to_observe:
            deferred.resolve(ipc.ObserveEventsResponse())
            self._events = None

    def _on_events(self, events: ipc.ObservableEvents) -> None:
        if self._events is None:
            return
        for part in split_message(events.encode(), MAX_PART_BYTES):
            response = ipc.ObserveEventsResponse(events=ipc.ObservableEvents.decode(part))
            self._events.resolve(response, has_more=True)

    # --- calls of the service (Consumer)

    def on_connect(self) -> None:
        """Send nothing: the reply to BindService reports the connection."""

    def on_disconnect(self) -> None:
        """Send nothing: the consumer detects the end of the connection."""

    def on_tracing_disabled(self, error: str) -> None:
        deferred, self._enabling = self._enabling, None
        if deferred is None:
            self._ended = error
            return
        response = ipc.EnableTracingResponse(disabled=True)
        if error:
            response.error = error
        deferred.resolve(response)

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        """Never called: the trace is read with `trace_pieces`."""


def _reply_on_success(deferred: Deferred, reply: Message) -> Callable[[bool], None]:
    return lambda success: deferred.resolve(reply) if success else deferred.reject()


def _config_in(request: Raw) -> bytes:
    """Return the config in a request, still encoded: decoding a long config takes time.

    Raises:
        DecodeError: The request or the config is malformed.
    """
    config = field_bytes(request.data, _TRACE_CONFIG)
    TraceConfig.decode(config)
    return config
