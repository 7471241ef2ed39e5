"""TracingSession: records the data of data sources, and reads it.

    session = stretto.TracingSession(TraceConfig(...))
    session.start()
    ...
    session.stop()
    trace = session.read()

States: configured -> started -> stopped -> read any number of times -> closed. When a session is
closed or deleted, it ends, and its buffers are freed. With `backend="system"` it runs on the
machine's tracing service, and records every connected process.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

from stretto.base.errors import ConfigError, SessionError, StrettoError, TransportError
from stretto.client import fork
from stretto.client.tracing import tracing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from stretto.client.backend import SessionBackend
    from stretto.ports.endpoints import ConsumerEndpoint
    from stretto.protos.config import TraceConfig
    from stretto.protos.ipc import ObservableEvents
    from stretto.protos.trace import TraceStats

STOP_TIMEOUT_S = 20.0
"""More than the sum of the service's own time-outs for slow data sources and flushes."""

READ_TIMEOUT_S = 3600.0
FLUSH_TIMEOUT_MS = 5000

START_TIMEOUT_S = 5.0
"""How long `start` waits for data sources: a process may be suspended, and never reply."""

RESUME_PERIOD_S = 0.1
"""How often a waiting thread checks whether a fork has stopped the tracing thread."""

FLUSH_BY_CONSUMER = 0x34
"""FlushFlags: initiator consumer SDK, reason explicit."""

_ALL_DATA_SOURCES_STARTED = 2
"""A value of ObservableEvents.Type."""
_START_TRACING = 1
"""The trigger mode of sessions that start at a trigger."""


class _Waiter:
    """An event that the backend's thread sets."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        self.arrived = False
        self._error: BaseException | None = None

    def run(self, request: Callable[[Callable[[], None]], None]) -> None:
        """Start a request, whose reply sets the event; `wait` raises what the start raises."""
        try:
            request(self.set)
        except BaseException as error:  # noqa: BLE001  # raised by the thread that waits
            self._error = error
            self.set()

    def set(self) -> None:
        if not self.arrived:
            self.arrived = True
            self._lock.release()

    def wait(self, timeout_s: float, what: str) -> None:
        if not self.arrives(timeout_s):
            raise SessionError(f"The tracing service did not {what} within {timeout_s:g} s.")
        if self._error is not None:
            raise self._error

    def arrives(self, timeout_s: float) -> bool:
        """Wait for the event; False if it did not come in time."""
        end = monotonic() + timeout_s
        while not self._lock.acquire(timeout=max(0, min(RESUME_PERIOD_S, end - monotonic()))):
            if monotonic() >= end:
                return False
            fork.resume()
        self._lock.release()
        return True


class _SessionConsumer:
    """Receives the service's callbacks about one session (ports.endpoints.Consumer)."""

    def __init__(self) -> None:
        self.connected = _Waiter()
        self.started = _Waiter()
        self.disabled = _Waiter()
        self.gone = False
        self.error = ""
        self.pieces: list[bytes] = []
        self.data_complete: Callable[[], None] = lambda: None
        self.pending: set[_Waiter] = set()

    def on_connect(self) -> None:
        self.connected.set()

    def on_disconnect(self) -> None:
        self.gone = True
        self.on_tracing_disabled("The tracing service has disconnected.")
        self.connected.set()
        for waiter in self.pending.copy():
            waiter.set()

    def on_tracing_disabled(self, error: str) -> None:
        self.error = self.error or error
        self.started.set()
        self.disabled.set()

    def on_events(self, events: ObservableEvents) -> None:
        """Handle "all data sources started". Services without this event send an empty message."""
        self.started.set()

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self.pieces.append(data)
        if not has_more:
            self.data_complete()


class TracingSession:
    """One recording.

    Args:
        config: A `stretto.protos.config.TraceConfig`; or its encoding (bytes); or its text form
            (str).
        backend: "in_process" (the default): a service inside this program; or "system": the
            machine's service, which records other processes, too. The variables
            PERFETTO_PRODUCER_SOCK_NAME and PERFETTO_CONSUMER_SOCK_NAME name the service's sockets;
            by default they have Perfetto's paths.

    Raises:
        ConfigError: The config isn't a TraceConfig.
        StrettoError: There is no such backend.
    """

    def __init__(self, config: TraceConfig | bytes | str, backend: str = "in_process") -> None:
        decoded = decode_config(config)
        self._config = decoded.encode()
        triggers = decoded.trigger_config
        starts_later = triggers is not None and triggers.trigger_mode == _START_TRACING
        self._starts_at_once = not decoded.deferred_start and not starts_later
        self._backend_name = backend
        self._writes_file = decoded.write_into_file
        self._end_timeout_s = float("inf") if self._writes_file else STOP_TIMEOUT_S
        """Writing a slow file has no time-out; if a file can't be written, the session ends."""
        self._consumer = _SessionConsumer()
        self._backend: SessionBackend | None = None
        self._endpoint: ConsumerEndpoint | None = None
        self._started = False
        self._pid = os.getpid()

    @property
    def is_of_parent(self) -> bool:
        """Whether this process is a forked child: then the session belongs to its parent."""
        return self._pid != os.getpid()

    def setup(self, fd: int | None = None) -> None:
        """Connect to the service; with `fd`, the trace is written to that file (`write_into_file`).

        `start` calls it if it wasn't called before.

        Raises:
            TransportError: There is no service, or it refuses this user.
        """
        if self._endpoint is not None:
            raise SessionError("The session is set up already.")
        self._fd = fd
        self._backend = tracing.session_backend(self._backend_name)
        self._endpoint = self._backend.call(self._connect)
        self._consumer.connected.wait(STOP_TIMEOUT_S, "answer")
        self._check_connection(self._endpoint)

    def _connect(self) -> ConsumerEndpoint:
        assert self._backend is not None
        return self._backend.connect_consumer(self._consumer)

    def _check_connection(self, endpoint: ConsumerEndpoint) -> None:
        if self._consumer.gone:
            raise TransportError(endpoint.error or "The tracing service has disconnected.")

    def start(self) -> None:
        """Start recording; return when the data sources of all processes record.

        The wait for processes that don't reply is limited to 5 s.

        Raises:
            SessionError: The service refuses the config; the message says why.
            TransportError: There is no service, or the service has disconnected.
        """
        if self._started:
            raise SessionError("The session has been started already: make another one.")
        if self._endpoint is None:
            self.setup()
        backend, endpoint = self._connected()
        self._started = True
        backend.call(lambda: self._enable(endpoint))
        if self._starts_at_once:
            self._consumer.started.arrives(START_TIMEOUT_S)
        else:  # The service reports an error of the session before it answers this query.
            self._request(lambda done: endpoint.query_capabilities(lambda _: done()), "answer")
        self._check_connection(endpoint)
        if self._consumer.error:
            raise SessionError(self._consumer.error)

    def _enable(self, endpoint: ConsumerEndpoint) -> None:
        endpoint.observe_events(_ALL_DATA_SOURCES_STARTED, self._consumer.on_events)
        endpoint.enable_tracing(self._config, self._fd)

    def _request(
        self,
        request: Callable[[Callable[[], None]], None],
        what: str,
        timeout_s: float = STOP_TIMEOUT_S,
    ) -> None:
        """Send a request on the backend's thread, and wait for the reply."""
        backend, endpoint = self._connected()
        replied = _Waiter()
        self._consumer.pending.add(replied)
        try:
            self._check_connection(endpoint)
            # One change of threads: a call and a wait would take two.
            backend.post(lambda: replied.run(request))
            replied.wait(timeout_s, what)
        finally:
            self._consumer.pending.discard(replied)
        self._check_connection(endpoint)

    def flush(self, timeout_ms: int = FLUSH_TIMEOUT_MS) -> bool:
        """Flush all data sources; False if one of them did not finish in `timeout_ms`."""
        return self._flush(timeout_ms, lambda: None)

    def _flush(self, timeout_ms: int, then: Callable[[], None]) -> bool:
        """Flush all data sources, then call a function on the backend's thread."""
        _, endpoint = self._connected()
        results = [False]

        def flush(done: Callable[[], None]) -> None:
            def on_flushed(success: bool) -> None:
                results[0] = success
                try:
                    then()
                finally:
                    done()

            endpoint.flush(timeout_ms, on_flushed, FLUSH_BY_CONSUMER)

        self._request(flush, "flush", timeout_ms / 1000 + STOP_TIMEOUT_S)
        return results[0]

    def stop(self) -> None:
        """Flush and stop recording; the data stays in the buffers. Idempotent."""
        _, endpoint = self._connected()
        if not self._consumer.disabled.arrived:
            self._flush(FLUSH_TIMEOUT_MS, endpoint.disable_tracing)
        # The service notifies the data sources first.
        self._consumer.disabled.wait(self._end_timeout_s, "stop")
        self._check_connection(endpoint)
        if self._consumer.error:
            raise SessionError(self._consumer.error)

    def wait(self, timeout_s: float = float("inf")) -> None:
        """Wait until the session ends by itself (`duration_ms`, `max_file_size_bytes`)."""
        _, endpoint = self._connected()
        self._consumer.disabled.wait(timeout_s, "end the session")
        self._check_connection(endpoint)

    def read(self) -> bytes:
        """Return the trace data recorded since the last read."""
        _, endpoint = self._connected()

        def read(done: Callable[[], None]) -> None:
            self._consumer.pieces = []
            self._consumer.data_complete = done
            endpoint.read_buffers()

        self._request(read, "send the trace", READ_TIMEOUT_S)
        return b"".join(self._consumer.pieces)

    def stats(self) -> TraceStats:
        """Return the statistics of the service for this session."""
        from stretto.protos.trace import TraceStats

        _, endpoint = self._connected()
        results = list[bytes | None]()

        def get_stats(done: Callable[[], None]) -> None:
            def on_stats(encoded: bytes | None) -> None:
                results.append(encoded)
                done()

            endpoint.get_trace_stats(on_stats)

        self._request(get_stats, "send its statistics")
        encoded = results[0]
        if encoded is None:
            raise SessionError("There is no session to get statistics of.")
        return TraceStats.decode(encoded)

    def close(self) -> None:
        """End the session and free its buffers. Idempotent."""
        if self._endpoint is None or self._backend is None or self.is_of_parent:
            return
        if self._writes_file and self._started and self._backend_name == "in_process":
            self._complete_file(self._backend, self._endpoint)
        endpoint, self._endpoint = self._endpoint, None
        self._backend.call(endpoint.disconnect)
        if not self._consumer.disabled.arrived:
            self._backend.call(lambda: None)  # Returns when the data sources were notified.

    def _complete_file(self, backend: SessionBackend, endpoint: ConsumerEndpoint) -> None:
        """Wait until the file is complete: the service inside this program writes it."""
        backend.call(endpoint.disable_tracing)
        self._consumer.disabled.arrives(self._end_timeout_s)

    def __del__(self) -> None:
        # This runs on any thread, also within the garbage collector: it must not block.
        endpoint, backend = getattr(self, "_endpoint", None), getattr(self, "_backend", None)
        if endpoint is not None and backend is not None and not self.is_of_parent:
            backend.post(endpoint.disconnect)

    def _connected(self) -> tuple[SessionBackend, ConsumerEndpoint]:
        if self._backend is None or self._endpoint is None:
            raise SessionError("The session isn't running: call start() first.")
        if self.is_of_parent:
            raise SessionError(
                "The session belongs to the parent process, which continues recording: "
                "start one here to record the child."
            )
        return self._backend, self._endpoint

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def decode_config(
    config: TraceConfig | bytes | str, *, allow_unknown_fields: bool = False
) -> TraceConfig:
    """Return a session's config as a message.

    Args:
        config: The message, its encoding, or its text form.
        allow_unknown_fields: Whether unknown fields of the text form are ignored.

    Raises:
        ConfigError: The config is malformed.
    """
    from stretto.protos.config import TraceConfig

    if isinstance(config, TraceConfig):
        return config
    if isinstance(config, bytes):
        try:
            return TraceConfig.decode(config)
        except StrettoError as error:
            raise ConfigError(f"The config isn't an encoded TraceConfig: {error}") from error
    if isinstance(config, str):
        return _parse_config(config, allow_unknown_fields)
    raise ConfigError(
        f"The config must be a TraceConfig, bytes or text, not {type(config).__name__}."
    )


def _parse_config(text: str, allow_unknown_fields: bool) -> TraceConfig:
    from stretto.protos.config import TraceConfig
    from stretto.protozero.text_format import TextFormatError, parse_text

    try:
        return parse_text(text, TraceConfig, "config", allow_unknown_fields=allow_unknown_fields)
    except TextFormatError as error:
        raise ConfigError(f"The config isn't a TraceConfig in text form: {error}") from error
