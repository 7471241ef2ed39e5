"""The consumer's side of ConsumerPort: an endpoint for a service behind a socket.

    caller --requests--> SendQueue --> socket
    Consumer's callbacks, replies <-- task runner <-- socket

Life cycle
    connect       opens the socket; requests are accepted, and queued until the bind
    on_connect    the service offers ConsumerPort; queued requests are sent
    disconnect    ends the connection, and the session unless it is detached
    abandon       in the child of a fork: closes the child's copy of the socket

Rules
- Everything runs on the task runner's thread.
- The service must run as root or as this process's user: traces of other users' services are
  not trusted.
- When the connection ends, `on_disconnect` is called instead of the callbacks of pending
  requests, and `error` contains the reason.
- A request that an older service doesn't support is treated as rejected.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.base.errors import DecodeError, LocalProtocolError, TransportError
from stretto.base.unix_socket import UnixSocket
from stretto.ipc.client import MAX_ARGS_BYTES, Client
from stretto.ipc.connection import Connection
from stretto.ipc.service import Raw
from stretto.ports.consumer_port import CONSUMER_PORT
from stretto.ports.encoded_message import field_bytes
from stretto.ports.service_state import decode_state
from stretto.ports.trace_slices import SliceJoiner
from stretto.protos import ipc
from stretto.protozero.wire import bytes_field

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.client import ServiceProxy
    from stretto.ipc.service import Message
    from stretto.ports.endpoints import Consumer
    from stretto.protos.trace import TracingServiceState

    OnReply = Callable[[Any, bool], object]

MAX_STATE_BYTES = 64 << 20
"""Largest accepted state of a service."""

_CONFIG = _STATS = _STATE = 1
"""Number of the only field in the messages that carry a config, statistics or a state."""

_DISCONNECTED = "the tracing service disconnected: it was stopped, or its log says why"
_REFUSED = (
    "the tracing service disconnected at once: it accepts its own user, root, and the members of "
    "its consumer group; use one of these users, or run the service as yours"
)

_Capabilities = ipc.TracingServiceCapabilities


class ConsumerIPCClient:
    """A `ConsumerEndpoint` over a socket.

    Args:
        end: The socket, connected to a service; owned by this object from now on.
        consumer: Receives the callbacks.
        runner: The task runner of the connection.
        timeout_ms: Time in ms for the service to offer ConsumerPort.

    Attributes:
        error: The reason why the connection has ended, with advice; empty while the connection is
            open, and after `disconnect`.
    """

    def __init__(
        self, end: UnixSocket, consumer: Consumer, runner: TaskRunner, timeout_ms: float = 5000
    ) -> None:
        self.error = ""
        self._consumer = consumer
        self._runner = runner
        self._leaving = False
        self._proxy: ServiceProxy | None = None
        self._observer: object = None
        self._waiting: list[tuple[str, Raw, OnReply, int]] = []
        queue = _native.SendQueue(end.fileno())
        self._connection = Connection(end, runner, queue, self._on_closed)
        self._client = Client(self._connection, self._connection)
        self._deadline = runner.post_delayed(self._on_timeout, timeout_ms)
        self._connection.start(self._client)
        self._client.bind(CONSUMER_PORT, self._on_bound)

    @classmethod
    def connect(
        cls, address: str, consumer: Consumer, runner: TaskRunner, timeout_ms: float = 5000
    ) -> ConsumerIPCClient:
        """Connect to the consumer socket of a service.

        Args:
            address: A path or `@name`.
            consumer: Receives the callbacks.
            runner: The task runner of the connection.
            timeout_ms: Limit in ms for connecting; a second limit of the same length is for the
                first reply.

        Raises:
            TransportError: There is no service, it refuses this user, or it runs as another user.
        """
        try:
            end = UnixSocket.connect(address, timeout_ms)
        except TransportError as error:
            raise TransportError(
                f"{error} Start it (`stretto traced`), or say in PERFETTO_CONSUMER_SOCK_NAME "
                "where it listens; a service run by root accepts the members of one group"
            ) from error
        uid = end.peer_credentials().uid
        if uid not in (0, os.geteuid()):
            end.close()
            raise TransportError(
                f"the service at {address} runs as user {uid}: it must be ours or root's, "
                "else what it sends as a trace could be anything"
            )
        return cls(end, consumer, runner, timeout_ms)

    @property
    def connected(self) -> bool:
        """Whether the service offers ConsumerPort and the connection is open."""
        return self._proxy is not None and not self._connection.closed

    @property
    def closed(self) -> bool:
        """Whether either side has closed the connection."""
        return self._connection.closed

    def disconnect(self) -> None:
        """Close the connection. Idempotent."""
        self._leaving = True
        self._connection.close()

    def abandon(self) -> None:
        """In the child of a fork: close this process's copy of the parent's socket."""
        self._connection.abandon()
        self._drop_waiting()

    def _on_bound(self, proxy: ServiceProxy | None) -> None:
        if self._connection.closed:
            return
        if proxy is None:
            self._fail("the socket offers no ConsumerPort: give the consumer socket's address")
            return
        self._runner.cancel(self._deadline)
        self._proxy = proxy
        self._consumer.on_connect()
        waiting, self._waiting = self._waiting, []
        for name, request, on_reply, fd in waiting:
            self._send(proxy, name, request, on_reply, fd)
            _close(fd)

    def _on_timeout(self) -> None:
        if not self._connection.closed:
            self._fail("the tracing service doesn't answer: is it stopped?")

    def _fail(self, error: str) -> None:
        self.error = self.error or error
        self._connection.close()

    def _on_closed(self) -> None:
        self._runner.cancel(self._deadline)
        self._drop_waiting()
        if not self._leaving:
            self.error = self.error or (_DISCONNECTED if self._proxy else _REFUSED)
        self._runner.post(self._consumer.on_disconnect)

    def _drop_waiting(self) -> None:
        for *_, fd in self._waiting:
            _close(fd)
        self._waiting.clear()

    def _invoke(self, name: str, request: Message, on_reply: OnReply, fd: int = -1) -> None:
        """Send a request, now or after the service is bound.

        Raises:
            LocalProtocolError: The request is too large for a frame.
            OSError: `fd` is not an open descriptor.
        """
        if fd >= 0:
            os.fstat(fd)
        encoded = Raw(request.encode())
        if len(encoded.data) > MAX_ARGS_BYTES:
            raise LocalProtocolError(
                f"{name} with {len(encoded.data)} bytes: over a socket at most {MAX_ARGS_BYTES} "
                "are possible"
            )
        if self._proxy is not None:
            self._send(self._proxy, name, encoded, on_reply, fd)
        elif not self._connection.closed:
            self._waiting.append((name, encoded, on_reply, os.dup(fd) if fd >= 0 else -1))

    def _send(
        self, proxy: ServiceProxy, name: str, request: Raw, on_reply: OnReply, fd: int
    ) -> None:
        def on_open_reply(reply: Any, has_more: bool) -> None:
            # After the connection has ended, no callback is called.
            if not self._connection.closed:
                self._guarded(on_reply, reply, has_more)

        if not proxy.method_id(name):  # An older service doesn't support the request.
            self._runner.post(lambda: on_open_reply(None, False))
        elif not proxy.invoke(name, request, on_open_reply, fd):
            self._fail("the tracing service reads no more requests: is it stopped?")

    def _guarded(self, on_reply: OnReply, reply: Any, has_more: bool) -> None:
        try:
            on_reply(reply, has_more)
        except DecodeError as error:
            self._fail(f"the tracing service sent what can't be read ({error}): is it damaged?")

    def _send_without_answer(self, name: str, request: Message) -> None:
        self._invoke(name, request, lambda _reply, _has_more: None)

    # --- methods of ConsumerEndpoint: the session

    def enable_tracing(self, config: bytes, fd: int | None = None) -> None:
        """Set up a session.

        Args:
            config: An encoded TraceConfig.
            fd: Output file for `write_into_file`; owned by the caller.

        Raises:
            OSError: `fd` is not an open descriptor.
        """
        request = Raw(bytes_field(_CONFIG, config))
        try:
            self._invoke("EnableTracing", request, self._on_ended, -1 if fd is None else fd)
        except LocalProtocolError as error:
            refused = ipc.EnableTracingResponse(disabled=True, error=f"The config: {error}")
            self._runner.post(lambda: self._on_ended(refused, False))

    def _on_ended(self, reply: ipc.EnableTracingResponse | None, _has_more: bool) -> None:
        if reply is None:
            reply = ipc.EnableTracingResponse(
                error="The tracing service refuses the session: is the config well-formed?"
            )
        self._consumer.on_tracing_disabled(reply.error)

    def start_tracing(self) -> None:
        """Start a session that was deferred."""
        self._send_without_answer("StartTracing", ipc.StartTracingRequest())

    def change_trace_config(self, config: bytes) -> None:
        """Replace the producer filters of the running session's data sources."""
        self._send_without_answer("ChangeTraceConfig", Raw(bytes_field(_CONFIG, config)))

    def disable_tracing(self) -> None:
        """End the session without a flush; its data can be read."""
        self._send_without_answer("DisableTracing", ipc.DisableTracingRequest())

    def flush(self, timeout_ms: int, callback: Callable[[bool], None], flags: int = 0) -> None:
        """Flush the producers; call back with True if all of them finished in time."""
        request = ipc.FlushRequest(timeout_ms=timeout_ms, flags=flags)
        self._invoke("Flush", request, lambda reply, _has_more: callback(reply is not None))

    def free_buffers(self) -> None:
        """End the session and free its buffers."""
        self._send_without_answer("FreeBuffers", ipc.FreeBuffersRequest())

    def detach(self, key: str, callback: Callable[[bool], None]) -> None:
        """Detach the session, until a consumer of the same user attaches it by `key`."""
        request = ipc.DetachRequest(key=key)
        self._invoke("Detach", request, lambda reply, _has_more: callback(reply is not None))

    def attach(self, key: str, callback: Callable[[bytes | None], None]) -> None:
        """Attach a detached session; call back with its encoded TraceConfig, or None."""

        def on_attached(reply: Raw | None, _has_more: bool) -> None:
            if reply is not None:
                notify = ipc.EnableTracingRequest(attach_notification_only=True)
                self._invoke("EnableTracing", notify, self._on_ended)
            callback(None if reply is None else field_bytes(reply.data, _CONFIG))

        self._invoke("Attach", ipc.AttachRequest(key=key), on_attached)

    def clone_session(
        self,
        request: ipc.CloneSessionRequest,
        fd: int | None,
        callback: Callable[[ipc.CloneSessionResponse], None],
    ) -> None:
        """Clone another session for this consumer; `fd` is owned by the caller."""

        def on_cloned(reply: ipc.CloneSessionResponse | None, _has_more: bool) -> None:
            refused = ipc.CloneSessionResponse(
                success=False, error="The tracing service is too old to clone, or refuses to."
            )
            callback(reply or refused)

        self._invoke("CloneSession", request, on_cloned, -1 if fd is None else fd)

    # --- methods of ConsumerEndpoint: reading and queries

    def read_buffers(self) -> None:
        """Read the trace data recorded since the last read, and pass it to `on_trace_data`."""
        joiner = SliceJoiner()

        def on_slices(reply: Raw | None, has_more: bool) -> None:
            trace = b"" if reply is None else joiner.add(reply.data)
            if trace or not has_more:
                self._consumer.on_trace_data(trace, has_more)

        self._invoke("ReadBuffers", ipc.ReadBuffersRequest(), on_slices)

    def observe_events(self, types: int, callback: Callable[[ipc.ObservableEvents], None]) -> None:
        """Observe events of the session.

        Args:
            types: Bits of ObservableEvents.Type; 0 to stop.
            callback: Called with events; replaces the previous callback. If the service doesn't
                support the request, the callback is called once with an empty event.
        """
        observer = self._observer = object()

        def on_events(reply: ipc.ObserveEventsResponse | None, _has_more: bool) -> None:
            if self._observer is not observer:
                return
            if reply is None:
                callback(ipc.ObservableEvents())
            elif reply.events is not None:
                callback(reply.events)

        bits = [1 << bit for bit in range(types.bit_length()) if types >> bit & 1]
        self._invoke("ObserveEvents", ipc.ObserveEventsRequest(events_to_observe=bits), on_events)

    def get_trace_stats(self, callback: Callable[[bytes | None], None]) -> None:
        """Call back with the encoded TraceStats; None without a session."""

        def on_stats(reply: Raw | None, _has_more: bool) -> None:
            callback(None if reply is None else field_bytes(reply.data, _STATS))

        self._invoke("GetTraceStats", ipc.GetTraceStatsRequest(), on_stats)

    def query_service_state(
        self, callback: Callable[[TracingServiceState], None], *, sessions_only: bool = False
    ) -> None:
        """Call back with the service's state; with `sessions_only`, only with its sessions."""
        state = bytearray()

        def on_part(reply: Raw | None, has_more: bool) -> None:
            state.extend(b"" if reply is None else field_bytes(reply.data, _STATE))
            if len(state) > MAX_STATE_BYTES:
                raise DecodeError(f"a state of more than {MAX_STATE_BYTES} bytes")
            if not has_more:
                callback(decode_state(bytes(state)))

        request = ipc.QueryServiceStateRequest(sessions_only=sessions_only)
        self._invoke("QueryServiceState", request, on_part)

    def query_capabilities(self, callback: Callable[[_Capabilities], None]) -> None:
        """Call back with the service's capabilities; empty if it doesn't support the request."""

        def on_capabilities(reply: ipc.QueryCapabilitiesResponse | None, _has_more: bool) -> None:
            callback((reply and reply.capabilities) or _Capabilities())

        self._invoke("QueryCapabilities", ipc.QueryCapabilitiesRequest(), on_capabilities)


def _close(fd: int) -> None:
    if fd >= 0:
        os.close(fd)
