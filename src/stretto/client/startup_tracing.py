"""Startup tracing: recording before a service is connected (Perfetto's SetupStartupTracing).

A session records a program only after the program is connected: earlier events are not in the
trace. With startup tracing the program's data sources start at once, with the config that the
session is expected to have. They write into memory of this process::

    recording --a service sets up the same config--> adopted: the service gets everything
        |
        +--time-out, abort(), disconnection--> aborted: the data is discarded

Each data source has a *reservation*, a number in place of its unknown target buffer. Its chunks
stay in the memory. When the memory is full, events are dropped and counted, so a startup session
never stalls the program. When the service sets up a data source with a config that
`can_adopt_startup_session` accepts, the reservation is bound to the service's buffer. Recording
continues without a gap.

If a connection has shared memory already, that memory is used. All methods may be called from any
thread: the thread that removes an instance from `waiting` handles the instance.

Sources: docs/formats/shared_memory.md, "Startup writers"; docs/formats/track_events.md, "Startup
tracing".
"""

from __future__ import annotations

from stretto.client.data_source import RESERVATION_SHIFT
from stretto.client.safe_call import call_safely
from stretto.ports.producer_memory import PAGE_SIZE, SHM_SIZE
from stretto.ports.startup_memory import StartupMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto import _native
    from stretto.client.data_source import DataSource
    from stretto.protos.config import DataSourceConfig

TIMEOUT_MS = 10_000.0
"""Default time for which a startup session waits for a service."""

MAX_RESERVATION = 0xFFFF
NS_PER_MS = 1_000_000

RECORDING, ADOPTED, ABORTED = "recording", "adopted", "aborted"


class StartupTracingSession:
    """A startup session, made by `stretto.setup_startup_tracing`."""

    def __init__(
        self,
        on_adopted: Callable[[], object] | None = None,
        on_aborted: Callable[[], object] | None = None,
    ) -> None:
        self.state = RECORDING
        """The state: "recording", then "adopted" (every data source) or "aborted"."""
        self.num_data_sources_started = 0
        """The number of data sources of the config that this program has registered."""
        self.waiting: dict[int, DataSource] = {}
        self.deadline_ns = 0
        self._on_end = {ADOPTED: on_adopted, ABORTED: on_aborted}
        self._abort: Callable[[StartupTracingSession], object] | None = None

    def abort(self) -> None:
        """Stop the data sources that no service has adopted, and discard their data. Idempotent."""
        if self._abort is not None:
            self._abort(self)

    # --- for the producer's connection

    @property
    def is_set_up(self) -> bool:
        return self._abort is not None

    def begin(self, abort: Callable[[StartupTracingSession], object]) -> None:
        self._abort = abort

    def end(self, state: str) -> None:
        """Set the final state, and call the callback once."""
        callback = self._on_end.pop(state, None)
        self._on_end.clear()
        if self.state == RECORDING:
            self.state = state
            if callback is not None:
                call_safely(callback)


class StartupTracing:
    """The startup sessions of one producer.

    Args:
        now_ns: The clock of the deadlines.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.memory: StartupMemory | None = None
        """Memory that the next connection offers to its service."""
        self._now_ns = now_ns
        self._sessions: list[StartupTracingSession] = []
        self._reservations = 0  # The latest reservation number; numbers are never reused.

    def begin(
        self,
        session: StartupTracingSession,
        sources: Sequence[tuple[type[DataSource], DataSourceConfig]],
        arbiter: _native.Arbiter | None,
        timeout_ms: float,
    ) -> None:
        """Start data sources.

        Args:
            session: The startup session of the data sources.
            sources: The data sources and their configs.
            arbiter: The arbiter of the connection; None: `memory` is allocated.
            timeout_ms: How long the session may wait, in ms.

        Raises:
            TransportError: The memory could not be allocated.
        """
        if arbiter is None:
            arbiter = self._own_memory().arbiter
        session.begin(self.abort)
        session.deadline_ns = self._now_ns() + round(timeout_ms * NS_PER_MS)
        waiting = {}
        for source, config in sources[: MAX_RESERVATION - self._reservations]:
            self._reservations += 1
            waiting[self._reservations] = self._start(source, config, arbiter)
        session.num_data_sources_started = len(waiting)
        # The instances are stored last: from now on services may adopt or abort the data sources.
        session.waiting = waiting
        self._sessions.append(session)
        if not waiting:
            self.abort(session)

    def _own_memory(self) -> StartupMemory:
        if self.memory is None:
            self.memory = StartupMemory(SHM_SIZE, PAGE_SIZE)
            self.memory.on_refused = self.end_all
        return self.memory

    def _start(
        self, source: type[DataSource], config: DataSourceConfig, arbiter: _native.Arbiter
    ) -> DataSource:
        instance = source()
        instance.set_up(0, config, arbiter, self._reservations << RESERVATION_SHIFT)
        call_safely(instance.begin)
        return instance

    def adopt(
        self,
        source: type[DataSource],
        config: DataSourceConfig,
        arbiter: _native.Arbiter,
        keep: Callable[[DataSource], object],
    ) -> bool:
        """Let a service control a waiting instance; return False if none fits the config.

        Args:
            source: The data source that the service sets up.
            config: The service's config for it.
            arbiter: The arbiter of the connection.
            keep: Called with the adopted instance.
        """
        for session in tuple(self._sessions):
            for reservation, instance in tuple(session.waiting.items()):
                if (
                    instance.arbiter is arbiter
                    and type(instance) is source
                    and source.can_adopt_startup_session(instance.config, config)
                    and session.waiting.pop(reservation, None) is not None
                ):
                    keep(instance)
                    arbiter.bind_startup_target_buffer(reservation, config.target_buffer)
                    self._end_if_empty(session, ADOPTED)
                    return True
        return False

    def abort(self, session: StartupTracingSession) -> None:
        """End the waiting instances of a session."""
        while session.waiting:
            try:
                reservation, instance = session.waiting.popitem()
            except KeyError:  # Another thread has removed the last instance.
                break
            arbiter, target_buffer = instance.arbiter, instance.target_buffer
            call_safely(instance.end)
            del instance  # The instance's writers are deleted with the instance.
            arbiter.close_buffer(target_buffer)
            arbiter.bind_startup_target_buffer(reservation, 0)
        self._end_if_empty(session, ABORTED)

    def end_all(self, arbiter: _native.Arbiter | None = None) -> None:
        """Abort the sessions whose instances use `arbiter`; all sessions if it is None."""
        for session in tuple(self._sessions):
            if any(arbiter in (None, i.arbiter) for i in tuple(session.waiting.values())):
                self.abort(session)
        if self.memory is not None and arbiter in (None, self.memory.arbiter):
            self.memory = None

    def expire(self) -> float | None:
        """Abort expired sessions; return the ms until the next deadline, or None."""
        now = self._now_ns()
        for session in tuple(self._sessions):
            if session.deadline_ns <= now:
                self.abort(session)
        left = [session.deadline_ns - now for session in tuple(self._sessions)]
        return max(0, min(left)) / NS_PER_MS if left else None

    def forget(self) -> None:
        """Drop all sessions in the child of a fork: they belong to the parent."""
        for session in self._sessions:
            for instance in session.waiting.values():
                instance.forget()
            session.waiting.clear()
            session.state = ABORTED
        self._sessions.clear()
        self.memory = None

    def _end_if_empty(self, session: StartupTracingSession, state: str) -> None:
        if session.waiting:
            return
        if session in self._sessions:
            self._sessions.remove(session)
        session.end(state)
        if not self._sessions:
            self.memory = None  # No session uses the memory any more.
