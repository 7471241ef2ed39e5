"""A consumer that records the callbacks of the service."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from stretto.protos.ipc import CloneSessionRequest
from stretto.testing.decoded_packets import decode_packets

if TYPE_CHECKING:
    from stretto.protos.config import TraceConfig
    from stretto.protos.ipc import CloneSessionResponse, ObservableEvents
    from stretto.protos.trace import TracePacket
    from stretto.service.tracing_service import TracingService


class MockConsumer:
    """A consumer in this process, connected to a service.

    Args:
        service: The service.
        uid: User id of the consumer; by default that of this process.

    Attributes:
        disabled: The error of each ended session; "" if it succeeded.
        data: All trace bytes that were read.
        reads: (bytes, has_more) of each delivery.
        flushes: The result of each flush.
        events: Events received since `observe`.
        clones: The result of each clone.
    """

    def __init__(self, service: TracingService, uid: int | None = None) -> None:
        self.disabled: list[str] = []
        self.reads: list[tuple[int, bool]] = []
        self.flushes: list[bool] = []
        self.events: list[ObservableEvents] = []
        self.clones: list[CloneSessionResponse] = []
        self.data = b""
        self.connected = False
        self.endpoint = service.connect_consumer(self, os.getuid() if uid is None else uid)

    def enable(self, config: TraceConfig, fd: int | None = None) -> None:
        """Set up a session, and start it unless it is deferred."""
        self.endpoint.enable_tracing(config.encode(), fd)

    def flush(self, timeout_ms: int = 0, flags: int = 0) -> None:
        """Flush; the result is appended to `flushes`."""
        self.endpoint.flush(timeout_ms, self.flushes.append, flags)

    def observe(self, types: int) -> None:
        """Observe the session; its events are appended to `events`."""
        self.endpoint.observe_events(types, self.events.append)

    def clone(self, session_id: int = 0, fd: int | None = None, **request: Any) -> None:
        """Clone a session; the result is appended to `clones`.

        Args:
            session_id: Id of the session, unless the request selects it by name.
            fd: Output file, if the session writes into a file.
            request: More fields of CloneSessionRequest.
        """
        if session_id:
            request["session_id"] = session_id
        self.endpoint.clone_session(CloneSessionRequest(**request), fd, self.clones.append)

    def packets(self) -> list[TracePacket]:
        """Return all read packets as decoded messages."""
        return decode_packets(self.data)

    def on_connect(self) -> None:
        self.connected = True

    def on_disconnect(self) -> None:
        self.connected = False

    def on_tracing_disabled(self, error: str) -> None:
        self.disabled.append(error)

    def on_trace_data(self, data: bytes, has_more: bool) -> None:
        self.data += data
        self.reads.append((len(data), has_more))
