"""The service's side of one consumer: at most one session, owned as long as it is connected.

Rules: what is refused is said through `on_tracing_disabled`; a call that has no session to
act on does nothing. Callbacks reach the consumer as tasks.
"""

from __future__ import annotations

from stretto.base.errors import StrettoError
from stretto.service.limits import READ_BYTES_PER_TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stretto.ports.endpoints import Consumer
    from stretto.service.tracing_service import TracingService
    from stretto.service.tracing_session import TracingSession


class ConsumerEndpoint:
    """What a consumer calls on the service (ports.endpoints.ConsumerEndpoint)."""

    __slots__ = ("_connected", "_consumer", "_service", "_session", "uid")

    def __init__(self, service: TracingService, consumer: Consumer, uid: int) -> None:
        self._service = service
        self._consumer = consumer
        self._session: TracingSession | None = None
        self._connected = True
        self.uid = uid
        self._post(consumer.on_connect)

    @property
    def session_id(self) -> int:
        """The session's id, for `TracingService.snapshot`; 0 without a session."""
        return self._session.session_id if self._session else 0

    def enable_tracing(
        self,
        config: bytes,
        fd: int | None = None,
        *,
        ring_fds: Mapping[int, int] | None = None,
    ) -> None:
        """Set up a session, and start it unless the config says `deferred_start`.

        Args:
            config: An encoded TraceConfig.
            fd: Where the trace goes with `write_into_file`; stays the caller's.
            ring_fds: Files in which buffers are kept, by index, so that they survive this
                process; they stay the caller's.
        """
        try:
            if not self._connected or self._session is not None:
                raise StrettoError("This consumer has a session: free its buffers first.")
            session = self._service.create_session(self, config, fd, ring_fds or {})
        except StrettoError as error:
            self.on_tracing_disabled(str(error))
            return
        self._session = session
        self._service.set_up_session(session)
        if not session.config.deferred_start:
            session.start()

    def start_tracing(self) -> None:
        """Start a session that was deferred."""
        if self._session:
            self._session.start()

    def disable_tracing(self) -> None:
        """End the session without a flush; what was written can be read."""
        if self._session:
            self._session.disable()

    def flush(self, timeout_ms: int, callback: Callable[[bool], None], flags: int = 0) -> None:
        """Have the producers commit what they hold.

        Args:
            timeout_ms: 0 for the config's, else 5 s.
            callback: Gets whether all of them have answered in time.
            flags: FlushFlags: who asks, and why.
        """
        if self._session:
            self._session.flushes.start(timeout_ms, flags, callback)
        else:
            self._post(lambda: callback(False))

    def read_buffers(self, bytes_per_task: int = READ_BYTES_PER_TASK) -> None:
        """Deliver what the trace has got since the last read, `bytes_per_task` at a time."""
        session = self._session
        if session is None or session.writes_file:
            self._post(lambda: self._consumer.on_trace_data(b"", False))
            return
        self._post(lambda: self._read_some(session, bytes_per_task))

    def _read_some(self, session: TracingSession, limit: int) -> None:
        if session is not self._session:
            self._consumer.on_trace_data(b"", False)
            return
        data, has_more = session.reader.read(limit)
        self._consumer.on_trace_data(data, has_more)
        if has_more:
            self._post(lambda: self._read_some(session, limit))

    def free_buffers(self) -> None:
        """End the session if it runs, and forget it and its data."""
        session, self._session = self._session, None
        if session:
            session.free()

    def get_trace_stats(self, callback: Callable[[bytes | None], None]) -> None:
        """The answer is the encoded TraceStats, or None without a session."""
        self._post(lambda: callback(self.trace_stats()))

    def trace_stats(self) -> bytes | None:
        """The same at once, for callers in this process."""
        return self._session.reader.stats() if self._session else None

    def disconnect(self) -> None:
        """The consumer goes, or has died; its session with it."""
        if not self._connected:
            return
        self.free_buffers()
        self._connected = False
        self._service.task_runner.post(self._consumer.on_disconnect)

    def on_tracing_disabled(self, error: str) -> None:
        """The service's word that the session has ended."""
        self._post(lambda: self._consumer.on_tracing_disabled(error))

    def _post(self, callback: Callable[[], object]) -> None:
        def run() -> None:
            if self._connected:
                callback()

        self._service.task_runner.post(run)
