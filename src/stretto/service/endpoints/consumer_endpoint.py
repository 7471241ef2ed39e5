"""The service's endpoint for one consumer, with at most one session.

Rules: a refused session is reported by `on_tracing_disabled`; a call that requires a session has
no effect without one. Callbacks run as tasks. A disconnect frees the session.
"""

from __future__ import annotations

from stretto.base.errors import StrettoError
from stretto.service.endpoints.observable_events import Observer
from stretto.service.limits import READ_BYTES_PER_TASK
from stretto.service.session.session_factory import create_session, decode_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Protocol

    from stretto.ports.endpoints import Consumer
    from stretto.protos.config import TraceConfig
    from stretto.protos.ipc import (
        CloneSessionRequest,
        CloneSessionResponse,
        ObservableEvents,
        TracingServiceCapabilities,
    )
    from stretto.protos.trace import TracingServiceState
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.service_tracing_session import ServiceTracingSession
    from stretto.service.session.session_owner import UnfinishedClone
    from stretto.service.session.session_registry import SessionRegistry

    class ConsumerService(Protocol):
        """The members of the service that a consumer's endpoint uses."""

        context: ServiceContext
        registry: SessionRegistry

        def set_up_session(self, session: ServiceTracingSession) -> None: ...
        def change_filters(self, session: ServiceTracingSession, config: TraceConfig) -> None: ...
        def encoded_state(self, uid: int, *, sessions_only: bool) -> bytes: ...


class ConsumerEndpoint:
    """Implements `ports.endpoints.ConsumerEndpoint` for one consumer.

    Attributes:
        uid: User id of the consumer's process.
        session: The consumer's session, or None.
        pending_clone: The clone in progress, which will become the session; None without one.
        observer: Sends observed events to the consumer.
        error: Always empty: the service doesn't end the connection.
    """

    def __init__(self, service: ConsumerService, consumer: Consumer, uid: int) -> None:
        self._service = service
        self._consumer = consumer
        self._connected = True
        self.error = ""
        self.session: ServiceTracingSession | None = None
        self.pending_clone: UnfinishedClone | None = None
        self.observer = Observer(self._post)
        self.uid = uid
        self._post(consumer.on_connect)

    @property
    def session_id(self) -> int:
        """The session's id, for `TracingService.snapshot`; 0 without a session."""
        return self.session.session_id if self.session else 0

    @property
    def has_session(self) -> bool:
        return self.session is not None

    def enable_tracing(
        self,
        config: bytes,
        fd: int | None = None,
        *,
        ring_fds: Mapping[int, int] | None = None,
    ) -> None:
        """Set up a session, and start it unless `start_tracing` or a trigger starts it later.

        Args:
            config: An encoded TraceConfig.
            fd: Output file for `write_into_file`; owned by the caller.
            ring_fds: Files that hold the memory of buffers, by buffer index, so that the data
                survives this process; owned by the caller.
        """
        if not self._connected:
            return
        try:
            session = create_session(self._service.registry, self, config, fd, ring_fds or {})
        except StrettoError as error:
            self.on_tracing_disabled(str(error))
            return
        self.session = session
        self._service.set_up_session(session)
        session.start_unless_deferred()

    def start_tracing(self) -> None:
        """Start a session that was deferred."""
        if self.session:
            self.session.start()

    def change_trace_config(self, config: bytes) -> None:
        """Replace the producer filters of the running session's data sources."""
        if not self.session or not self.session.accepts_data_sources:
            return
        try:
            self._service.change_filters(self.session, decode_config(config))
        except StrettoError:
            return  # An invalid config is ignored, and the session continues.

    def disable_tracing(self) -> None:
        """End the session without a flush; its data can be read."""
        if self.session:
            self.session.disable()

    def flush(self, timeout_ms: int, callback: Callable[[bool], None], flags: int = 0) -> None:
        """Make the producers commit their data.

        Args:
            timeout_ms: Timeout in ms; 0 for that of the config, by default 5 s.
            callback: Called with True if all producers answered in time, else with False.
            flags: FlushFlags: initiator and reason.
        """
        if self.session:
            self.session.flushes.start(timeout_ms, flags, callback)
        else:
            self._post(lambda: callback(False))

    def free_buffers(self) -> None:
        """End the session and free its data."""
        if self.session:
            self.session.free()

    def read_buffers(self, bytes_per_task: int = READ_BYTES_PER_TASK) -> None:
        """Deliver the trace data recorded since the last read, `bytes_per_task` at a time."""
        pieces = self.trace_pieces(bytes_per_task)
        self._post(lambda: self._deliver(pieces))

    def _deliver(self, pieces: Iterator[tuple[bytes, bool]]) -> None:
        data, has_more = next(pieces)
        self._consumer.on_trace_data(data, has_more)
        if has_more:
            self._post(lambda: self._deliver(pieces))

    def trace_pieces(self, piece_bytes: int = READ_BYTES_PER_TASK) -> Iterator[tuple[bytes, bool]]:
        """Return the trace data recorded since the last read, as an iterator.

        Args:
            piece_bytes: Approximate bytes per piece; packets stay whole.

        Returns:
            Pairs (trace bytes, whether more bytes follow); at least one pair.
        """
        session, has_more = self.session, True
        while has_more:
            data, has_more = b"", False
            if session and session is self.session and not session.writes_file:
                data, has_more = session.reader.read(piece_bytes)
            yield data, has_more

    def get_trace_stats(self, callback: Callable[[bytes | None], None]) -> None:
        """Call back with the encoded TraceStats; None without a session."""
        self._post(lambda: callback(self.trace_stats()))

    def trace_stats(self) -> bytes | None:
        """Return the encoded TraceStats; None without a session."""
        return self.session.reader.stats() if self.session else None

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

        def answer(response: CloneSessionResponse) -> None:
            self._post(lambda: callback(response))

        # The module is imported only for a clone, since a recording has to start fast.
        from stretto.service.session.clone_session import start_clone

        if self._connected:
            start_clone(self._service.registry, self, request, fd, answer)

    def adopt(self, session: ServiceTracingSession) -> None:
        """Become the owner of a session."""
        session.owner = self
        session.detach_key = ""
        self.session = session

    def detach(self, key: str, callback: Callable[[bool], None]) -> None:
        """Detach the session, until a consumer of the same user attaches it by `key`."""
        session = self.session
        taken = self._service.registry.find_detached(key, self.uid) is not None
        detached = session is not None and bool(key) and not taken
        if session and detached:
            session.owner, session.detach_key = None, key
            self.forget_session()
        self._post(lambda: callback(detached))

    def attach(self, key: str, callback: Callable[[bytes | None], None]) -> None:
        """Attach a detached session; call back with its encoded TraceConfig, or None."""
        session = self._service.registry.find_detached(key, self.uid)
        if session is None or self.session is not None or self.pending_clone is not None:
            self._post(lambda: callback(None))
            return
        self.adopt(session)
        self._post(lambda: callback(session.config_bytes))
        if session.active:
            session.check_all_started()
        elif session.complete:  # The end of the session was not reported yet.
            session.report_end()

    def observe_events(self, types: int, callback: Callable[[ObservableEvents], None]) -> None:
        """Report events of the session from now on, beginning with the current states.

        Args:
            types: Bits of ObservableEvents.Type; 0 to stop.
            callback: Called with events; replaces the previous callback.
        """
        self.observer.observe(types, callback, self.session)

    def query_service_state(
        self, callback: Callable[[TracingServiceState], None], *, sessions_only: bool = False
    ) -> None:
        """Call back with the service's state; with `sessions_only`, only with its sessions."""
        from stretto.ports.service_state import decode_state

        state = self.encoded_service_state(sessions_only=sessions_only)
        self._post(lambda: callback(decode_state(state)))

    def encoded_service_state(self, *, sessions_only: bool = False) -> bytes:
        """Return the encoded service state. It contains descriptors as producers sent them."""
        return self._service.encoded_state(self.uid, sessions_only=sessions_only)

    def query_capabilities(self, callback: Callable[[TracingServiceCapabilities], None]) -> None:
        """Call back with the capabilities of the service."""
        from stretto.service.service_state import service_capabilities

        self._post(lambda: callback(service_capabilities()))

    def disconnect(self) -> None:
        """Remove the consumer, and free its session unless the session is detached."""
        if not self._connected:
            return
        if self.pending_clone:
            self.pending_clone.fail("The consumer has disconnected.")
        self.free_buffers()
        self._connected = False
        self._service.context.task_runner.post(self._consumer.on_disconnect)

    def forget_session(self) -> None:
        """Forget the session, which was detached or freed."""
        self.session = None
        self.observer.forget_session()

    def on_tracing_disabled(self, error: str) -> None:
        """Report the end of the session to the consumer."""
        self._post(lambda: self._consumer.on_tracing_disabled(error))

    def _post(self, callback: Callable[[], object]) -> None:
        def run() -> None:
            if self._connected:
                callback()

        self._service.context.task_runner.post(run)
