"""All sessions of a service, and their shared state."""

from __future__ import annotations

from stretto.base.errors import SessionError
from stretto.service.limits import MAX_UNFINISHED_FILES
from stretto.service.output.trace_stats import ServiceCounts
from stretto.service.session.guarded_starts import GuardedStarts
from stretto.service.session.service_tracing_session import ServiceTracingSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.base.errors import StrettoError
    from stretto.service.priority_boost import PriorityBoosts
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.compiled_config import CompiledConfig
    from stretto.service.session.session_owner import SessionOwner
    from stretto.service.session.session_producer import SessionProducer


class SessionRegistry:
    """Creates, finds and frees sessions. Implements `SessionHost`.

    Args:
        context: The context of the service.
        boosts: Priority boosts requested by sessions.
        producers: Returns all connected producers.
        count_producers: Fills in the counters of producers and data sources.
        on_error: Called with errors of sessions that have been freed.

    Attributes:
        by_id: All sessions that were not freed, in the order of their creation.
        unfinished: Freed sessions whose files are incomplete, in the order of freeing.
        guarded_starts: Start times of sessions with extra guardrails, by name.
        lockdown: Whether only producers of the service's own user are accepted.
        next_session_id: Id of the next session.
    """

    def __init__(
        self,
        context: ServiceContext,
        boosts: PriorityBoosts,
        *,
        producers: Callable[[], Iterable[SessionProducer]],
        count_producers: Callable[[ServiceCounts], object],
        on_error: Callable[[StrettoError], object],
    ) -> None:
        self.context = context
        self.boosts = boosts
        self.producers = producers
        self.by_id: dict[int, ServiceTracingSession] = {}
        self.unfinished: list[ServiceTracingSession] = []
        self.guarded_starts = GuardedStarts()
        self.lockdown = False
        self.next_session_id = 1
        self._count_producers = count_producers
        self._on_error = on_error

    def add(
        self,
        owner: SessionOwner,
        compiled: CompiledConfig,
        *,
        config_bytes: bytes,
        buffers: list[int],
        output_fd: int | None,
        uuid: tuple[int, int],
    ) -> ServiceTracingSession:
        """Create a session from a checked config; the session owns `buffers` and `output_fd`."""
        session = ServiceTracingSession(
            self.context,
            self,
            self.next_session_id,
            owner,
            compiled,
            config_bytes=config_bytes,
            buffers=buffers,
            output_fd=output_fd,
            uuid=uuid,
        )
        self.by_id[session.session_id] = session
        self.next_session_id += 1
        return session

    def all(self) -> list[ServiceTracingSession]:
        """Return a new list of all sessions that were not freed."""
        return list(self.by_id.values())

    def find_detached(self, key: str, uid: int) -> ServiceTracingSession | None:
        """Return the session that a consumer of user `uid` detached under `key`."""
        for session in self.by_id.values():
            if session.owner is None and session.detach_key == key and session.uid == uid:
                return session
        return None

    def sessions_other_than(self, session_id: int) -> list[ServiceTracingSession]:
        """Return all other sessions, including those that ended but were not freed."""
        return [each for each in self.by_id.values() if each.session_id != session_id]

    def on_session_state(self, session_id: int) -> None:
        """Write a session's new state into the traces of other sessions that request this."""
        session = self.by_id[session_id]
        for other in self.sessions_other_than(session_id):
            if other.concurrent and other.started:
                other.concurrent.note(session)

    def forget_session(self, session_id: int) -> None:
        """Free the buffers of a session that was freed.

        If the session's file is incomplete, the buffers are freed when the file is complete.
        """
        self.boosts.remove(session_id)
        session = self.by_id.pop(session_id)
        if session.complete:
            self.context.buffers.free(session.buffers)
            return
        self.unfinished.append(session)
        if len(self.unfinished) > MAX_UNFINISHED_FILES:
            self._abandon_file(self.unfinished[0])

    def _abandon_file(self, session: ServiceTracingSession) -> None:
        assert session.drain is not None
        session.drain.give_up()

    def on_file_complete(self, session_id: int) -> None:
        """Free the buffers of a freed session whose file is complete or has failed."""
        session = next((each for each in self.unfinished if each.session_id == session_id), None)
        if session is None:
            return  # The file was complete when the session was freed.
        assert session.drain is not None
        self.unfinished.remove(session)
        self.context.buffers.free(session.buffers)
        if session.drain.error:
            self._on_error(SessionError(f"session {session_id}: {session.drain.error}"))

    def counts(self) -> ServiceCounts:
        """Return the service-wide counters of TraceStats."""
        counts = ServiceCounts()
        counts.tracing_sessions = len(self.by_id)
        counts.total_buffers = sum(len(each.buffers) for each in self.by_id.values())
        self._count_producers(counts)
        return counts
