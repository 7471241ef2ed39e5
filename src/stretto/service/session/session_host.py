"""The interface through which sessions use the service."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from stretto.service.output.concurrent_sessions import ConcurrentSession
    from stretto.service.output.trace_stats import ServiceCounts
    from stretto.service.session.session_producer import SessionProducer

    class SessionHost(Protocol):
        """The members of the service that a session uses; implemented by `SessionRegistry`."""

        def producers(self) -> Iterable[SessionProducer]:
            """Return all connected producers."""

        def sessions_other_than(self, session_id: int) -> Sequence[ConcurrentSession]:
            """Return all other sessions, including those that ended but were not freed."""

        def on_session_state(self, session_id: int) -> None:
            """Called when a session has entered a state."""

        def forget_session(self, session_id: int) -> None:
            """Called when a session was freed. Its buffers are freed when its file is complete."""

        def on_file_complete(self, session_id: int) -> None:
            """Called when the file of a freed session is complete or has failed."""

        def counts(self) -> ServiceCounts:
            """Return the service-wide counters of TraceStats."""
