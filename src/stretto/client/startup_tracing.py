"""Startup tracing: recording before any service has asked for it (Perfetto's SetupStartupTracing).

A session that runs already hears of a program only once that has connected: what happened
before is not in its trace. Here the program's own data sources start at once, with the config
that the session is expected to have, and write into memory of the program's own::

    recording --a service sets up the same config--> adopted: the service gets everything
        |
        +--time-out, abort(), the service hung up--> aborted: what was written is discarded

Each data source has a *reservation*, which stands for the buffer that it will be given. When
the service sets up a data source that `can_adopt_startup_session`, the reservation becomes
the service's buffer, and recording goes on without a gap. Until then its chunks stay where
they are: when the memory is full, events are dropped, and counted. A startup session
therefore never stalls the program.

Where a connection has shared memory already, that is used. All may be called from any thread:
whoever takes an instance out of `waiting` deals with it.

Sources: docs/formats/shared_memory.md, "Startup writers";
docs/formats/track_events.md, "Startup tracing".
"""

from __future__ import annotations

from stretto.client.data_source import RESERVATION_SHIFT
from stretto.client.safe_call import call_safely
from stretto.ports.startup_memory import StartupMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto import _native
    from stretto.client.data_source import DataSource
    from stretto.protos.config import DataSourceConfig

TIMEOUT_MS = 10_000.0
"""How long a startup session waits for its service, unless told otherwise."""

SHM_SIZE = 8 << 20
PAGE_SIZE = 32 << 10
MAX_RESERVATION = 0xFFFF
NS_PER_MS = 1_000_000

RECORDING, ADOPTED, ABORTED = "recording", "adopted", "aborted"


class StartupTracingSession:
    """What `stretto.setup_startup_tracing` has started."""

    __slots__ = ("_abort", "_on_end", "deadline_ns", "num_data_sources_started", "state", "waiting")

    def __init__(
        self,
        on_adopted: Callable[[], object] | None = None,
        on_aborted: Callable[[], object] | None = None,
    ) -> None:
        self.state = RECORDING
        """"recording" until it is "adopted", all of it, or "aborted"."""
        self.num_data_sources_started = 0
        """Of those in the config: the ones that this program has registered."""
        self.waiting: dict[int, DataSource] = {}
        self.deadline_ns = 0
        self._on_end = {ADOPTED: on_adopted, ABORTED: on_aborted}
        self._abort: Callable[[StartupTracingSession], object] | None = None

    def abort(self) -> None:
        """End what no service has adopted, and discard it. Again, or too late: harmless."""
        if self._abort is not None:
            self._abort(self)

    # --- for the producer's connection

    @property
    def is_set_up(self) -> bool:
        return self._abort is not None

    def begin(self, abort: Callable[[StartupTracingSession], object]) -> None:
        self._abort = abort

    def end(self, state: str) -> None:
        """It is over; once."""
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
        """What the next connection offers to its service."""
        self._now_ns = now_ns
        self._sessions: list[StartupTracingSession] = []
        self._reservations = 0  # given so far: each stands for one buffer, for ever

    # --- beginning

    def begin(
        self,
        session: StartupTracingSession,
        sources: Sequence[tuple[type[DataSource], DataSourceConfig]],
        arbiter: _native.Arbiter | None,
        timeout_ms: float,
    ) -> None:
        """Start data sources.

        Args:
            session: Becomes theirs.
            sources: With their configs.
            arbiter: The connection's; without one there will be `memory`.
            timeout_ms: How long the session may wait.

        Raises:
            TransportError: There is no memory to be had.
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
        session.waiting = waiting  # only now: a service adopts or aborts all of it
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

    # --- ending

    def adopt(
        self,
        source: type[DataSource],
        config: DataSourceConfig,
        arbiter: _native.Arbiter,
        keep: Callable[[DataSource], object],
    ) -> bool:
        """Give a waiting instance to a service; False: there is none.

        Args:
            source: What the service sets up.
            config: How.
            arbiter: The connection's.
            keep: Takes the instance.
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
        """End what waits in a session."""
        while session.waiting:
            try:
                reservation, instance = session.waiting.popitem()
            except KeyError:  # another thread was faster
                break
            arbiter, target_buffer = instance.arbiter, instance.target_buffer
            call_safely(instance.end)
            del instance  # and its writers
            arbiter.close_buffer(target_buffer)
            arbiter.bind_startup_target_buffer(reservation, 0)
        self._end_if_empty(session, ABORTED)

    def end_all(self, arbiter: _native.Arbiter | None = None) -> None:
        """Abort all sessions, or those that write by way of one arbiter."""
        for session in tuple(self._sessions):
            if any(arbiter in (None, i.arbiter) for i in tuple(session.waiting.values())):
                self.abort(session)
        if self.memory is not None and arbiter in (None, self.memory.arbiter):
            self.memory = None

    def expire(self) -> float | None:
        """Abort what has waited for too long; the ms until the next deadline, if there is one."""
        now = self._now_ns()
        for session in tuple(self._sessions):
            if session.deadline_ns <= now:
                self.abort(session)
        left = [session.deadline_ns - now for session in tuple(self._sessions)]
        return max(0, min(left)) / NS_PER_MS if left else None

    def forget(self) -> None:
        """After a fork: all of it is the parent's."""
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
            self.memory = None  # no connection need offer it any more
