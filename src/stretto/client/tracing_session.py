"""TracingSession: records what data sources write, until it is read.

    session = stretto.TracingSession(TraceConfig(...))
    session.start()
    ...
    session.stop()
    trace = session.read()

States: configured -> started -> stopped -> read any number of times -> closed. A session that
is dropped or closed ends, and its buffers with it.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from time import monotonic

from stretto.base.errors import ConfigError, SessionError, StrettoError
from stretto.client import fork
from stretto.client.tracing import tracing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from stretto.client.backend import Backend
    from stretto.ports.endpoints import ConsumerEndpoint
    from stretto.protos.config import TraceConfig
    from stretto.protos.trace import TraceStats

STOP_TIMEOUT_S = 20.0
"""Longer than the service waits for slow data sources and flushes together."""

RESUME_PERIOD_S = 0.1
"""How often who waits looks whether a fork has stopped the tracing thread."""

FLUSH_BY_CONSUMER = 0x34
"""FlushFlags: initiator consumer SDK, reason explicit."""


class _Waiter:
    """A result that arrives from the backend's thread."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        self.arrived = False

    def set(self) -> None:
        if not self.arrived:
            self.arrived = True
            self._lock.release()

    def wait(self, timeout_s: float, what: str) -> None:
        end = monotonic() + timeout_s
        while not self._lock.acquire(timeout=max(0, min(RESUME_PERIOD_S, end - monotonic()))):
            if monotonic() >= end:
                raise SessionError(f"The tracing service did not {what} within {timeout_s:g} s.")
            fork.resume()
        self._lock.release()


class _SessionConsumer:
    """Receives what the service says of one session (ports.endpoints.Consumer)."""

    def __init__(self) -> None:
        self.disabled = _Waiter()
        self.error = ""
        self.pieces: list[bytes] = []
        self.data_complete = _Waiter()

    def on_connect(self) -> None:
        """The session's own calls follow."""

    def on_disconnect(self) -> None:
        self.on_tracing_disabled("The tracing service has gone away.")
        self.data_complete.set()

    def on_tracing_disabled(self, error: str) -> None:
        self.error = self.error or error
        self.disabled.set()

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self.pieces.append(data)
        if not has_more:
            self.data_complete.set()


class TracingSession:
    """One recording.

    Args:
        config: a `stretto.protos.config.TraceConfig`, or one encoded.
        backend: "in_process" (the default): a service inside this program.

    Raises:
        ConfigError: the config is no TraceConfig.
        StrettoError: there is no such backend.
    """

    def __init__(self, config: TraceConfig | bytes, backend: str = "in_process") -> None:
        self._config = _encode(config)
        self._backend_name = backend
        self._consumer = _SessionConsumer()
        self._backend: Backend | None = None
        self._endpoint: ConsumerEndpoint | None = None
        self._started = False
        self._pid = os.getpid()

    @property
    def is_of_parent(self) -> bool:
        """Whether this process is a forked child: then the session belongs to its parent."""
        return self._pid != os.getpid()

    def setup(self, fd: int | None = None) -> None:
        """Connect to the service; with `fd`, the trace goes there (`write_into_file`).

        Called by `start` if need be.
        """
        if self._endpoint is not None:
            raise SessionError("The session is set up already.")
        self._fd = fd
        self._backend = tracing.backend(self._backend_name)
        self._endpoint = self._backend.call(self._connect)

    def _connect(self) -> ConsumerEndpoint:
        assert self._backend is not None
        return self._backend.connect_consumer(self._consumer)

    def start(self) -> None:
        """Start recording; returns when data sources of this process record.

        Raises:
            SessionError: the service refuses the config; the message says why.
        """
        if self._started:
            raise SessionError("The session has been started already: make another one.")
        if self._endpoint is None:
            self.setup()
        backend, endpoint = self._connected()
        self._started = True
        backend.call(lambda: endpoint.enable_tracing(self._config, self._fd))
        backend.call(lambda: None)  # a refusal arrives as a task behind ours
        if self._consumer.error:
            raise SessionError(self._consumer.error)

    def flush(self, timeout_ms: int = 5000) -> bool:
        """Have every data source hand over what it holds. False if one did not in time."""
        backend, endpoint = self._connected()
        done, results = _Waiter(), [False]

        def on_flushed(success: bool) -> None:
            results[0] = success
            done.set()

        backend.call(lambda: endpoint.flush(timeout_ms, on_flushed, FLUSH_BY_CONSUMER))
        done.wait(timeout_ms / 1000 + STOP_TIMEOUT_S, "flush")
        return results[0]

    def stop(self) -> None:
        """Stop recording, with everything written so far in the buffers. Again: harmless."""
        backend, endpoint = self._connected()
        if not self._consumer.disabled.arrived:
            self.flush()
            backend.call(endpoint.disable_tracing)
        self._consumer.disabled.wait(STOP_TIMEOUT_S, "stop")
        backend.call(lambda: None)  # behind what data sources are told
        if self._consumer.error:
            raise SessionError(self._consumer.error)

    def wait(self, timeout_s: float = float("inf")) -> None:
        """Wait until the session ends by itself (`duration_ms`, `max_file_size_bytes`)."""
        self._connected()
        self._consumer.disabled.wait(timeout_s, "end the session")

    def read(self) -> bytes:
        """The trace so far; what was read once is not read again."""
        backend, endpoint = self._connected()
        self._consumer.pieces = []
        self._consumer.data_complete = _Waiter()
        backend.call(endpoint.read_buffers)
        self._consumer.data_complete.wait(3600, "send the trace")
        return b"".join(self._consumer.pieces)

    def stats(self) -> TraceStats:
        """What the service has counted so far."""
        from stretto.protos.trace import TraceStats

        backend, endpoint = self._connected()
        done, results = _Waiter(), list[bytes | None]()

        def on_stats(encoded: bytes | None) -> None:
            results.append(encoded)
            done.set()

        backend.call(lambda: endpoint.get_trace_stats(on_stats))
        done.wait(STOP_TIMEOUT_S, "send its statistics")
        encoded = results[0]
        if encoded is None:
            raise SessionError("There is no session to get statistics of.")
        return TraceStats.decode(encoded)

    def close(self) -> None:
        """End the session and free its buffers. Again: harmless."""
        if self._endpoint is None or self._backend is None or self.is_of_parent:
            return
        endpoint, self._endpoint = self._endpoint, None
        self._backend.call(endpoint.disconnect)
        self._backend.call(lambda: None)  # behind what data sources are told

    def __del__(self) -> None:
        # May run anywhere, within the collector too: it must not wait.
        endpoint, backend = getattr(self, "_endpoint", None), getattr(self, "_backend", None)
        if endpoint is not None and backend is not None and not self.is_of_parent:
            backend.post(endpoint.disconnect)

    def _connected(self) -> tuple[Backend, ConsumerEndpoint]:
        if self._backend is None or self._endpoint is None:
            raise SessionError("The session isn't running: call start() first.")
        if self.is_of_parent:
            raise SessionError(
                "The session belongs to the parent process, which goes on recording: "
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


def _encode(config: TraceConfig | bytes) -> bytes:
    from stretto.protos.config import TraceConfig

    if isinstance(config, TraceConfig):
        return config.encode()
    if isinstance(config, bytes):
        try:
            return TraceConfig.decode(config).encode()
        except StrettoError as error:
            raise ConfigError(f"The config is no encoded TraceConfig: {error}") from error
    raise ConfigError(f"The config must be a TraceConfig or bytes, not {type(config).__name__}.")
