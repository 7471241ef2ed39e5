"""The daemon: one service with its two ports, and its shutdown.

    run            until a signal
    SIGTERM, SIGINT, SIGHUP
                   sessions are flushed, stopped and saved into their files; consumers have some
                   seconds to read their traces; then all connections are closed
    second signal  ends at once

Rules
- One thread, and no periodic task: an idle daemon sleeps.
- An error in one task is logged; all other tasks continue.
- During the shutdown no consumer is accepted.
"""

from __future__ import annotations

import gc
import resource
import signal
import time
from typing import TYPE_CHECKING

from stretto import __version__, _native
from stretto.base.clock import SystemClock
from stretto.base.errors import StrettoError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.ports.consumer_ipc_service import ConsumerIPCService
from stretto.ports.peer import machine_name
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.service import service_state  # noqa: F401  # later, no descriptor may be free
from stretto.service.tracing_service import TracingService

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.peer_credentials import PeerCredentials
    from stretto.cli.traced.log import Log
    from stretto.cli.traced.sockets import Sockets
    from stretto.ports.endpoints import OutOfProcessProducer, RemoteProducerEndpoint
    from stretto.ports.producer_identity import ProducerIdentity
    from stretto.service.session.service_tracing_session import ServiceTracingSession

END_TIMEOUT_MS = 15_000
"""The limit for flushing and stopping sessions: more than the service's own two time-outs."""
READ_TIMEOUT_MS = 10_000
"""The limit for consumers to read their traces."""
FILE_TIMEOUT_MS = 30_000
"""The limit for writing the sessions' files."""
PIPE_PATIENCE_MS = 2000
"""The limit for a slow reader, if a session is written to a pipe."""
MAX_ERRORS = 100
ERROR_PAUSE_S = 0.01
"""A pause after each error beyond MAX_ERRORS, so that endless errors don't use a whole CPU."""
SHOWN_NAME = 60


class Daemon:
    """The service with its sockets.

    Args:
        sockets: the listening sockets; owned by this object from now on.
        log: the log for errors.
        may_consume: returns whether a peer may be a consumer.
        network_consumers: whether peers on a network may be consumers.
        takes_relays: returns, for the address of a producers' socket, whether relays may connect.
    """

    def __init__(
        self,
        sockets: Sockets,
        log: Log,
        *,
        may_consume: Callable[[PeerCredentials], bool],
        network_consumers: bool = False,
        takes_relays: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._log = log
        self._may_consume = may_consume
        self._signals = 0
        self._errors = 0
        self._runner = SelectorTaskRunner()
        self._service = TracingService(
            self._runner,
            SystemClock(_native.read_tsc),
            version=f"Stretto {__version__}",
            machine_name=machine_name(),
            pipe_patience_ms=PIPE_PATIENCE_MS,
            on_error=self._on_error,
        )
        self._producers = ProducerIPCService(
            self._runner,
            self._connect_producer,
            connect_relay=self._service.connect_relay,
            on_error=self._on_error,
        )
        self._consumers = ConsumerIPCService(
            self._runner,
            self._service.connect_consumer,
            may_connect=self._may_connect,
            allow_network=network_consumers,
            on_error=self._on_error,
        )
        for socket in sockets.producers:
            self._producers.listen(socket, relays=takes_relays(socket.address))
        for socket in sockets.consumers:
            self._consumers.listen(socket)

    def run(self, on_ready: Callable[[], object], on_stopping: Callable[[], object]) -> None:
        """Serve until a signal ends the daemon.

        Args:
            on_ready: called when connections are accepted.
            on_stopping: called when the shutdown begins.
        """
        self._take_signals()
        allow_many_descriptors()
        # The existing objects are permanent: freezing excludes them from garbage collections.
        gc.collect()
        gc.freeze()
        on_ready()
        self._run_until(lambda: self._signals > 0)
        on_stopping()
        self._end_sessions()

    def close(self) -> None:
        """Close all connections, and remove the sockets."""
        self._producers.close()
        self._consumers.close()
        self._run_until(lambda: True)
        self._runner.close()

    def _run_until(self, predicate: Callable[[], bool], timeout_ms: float | None = None) -> None:
        """Run the loop. An exception of a task is a bug: it is logged, and the loop continues."""
        while True:
            try:
                self._runner.run_until(predicate, timeout_ms)
                return
            except Exception:  # noqa: BLE001  # logged and counted
                from traceback import format_exc

                self._errors += 1
                self._log.write(f"a bug: {format_exc()}")
                if self._errors > MAX_ERRORS:
                    time.sleep(ERROR_PAUSE_S)

    def _take_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # A signal ignored by the parent (nohup, a shell's `&`) remains ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: self._runner.post(self._on_signal))

    def _on_signal(self) -> None:
        self._signals += 1

    @property
    def _is_second_signal(self) -> bool:
        return self._signals > 1

    def _end_sessions(self) -> None:
        """Flush and stop all sessions; wait for them, and for consumers that read."""
        sessions = list(self._service.sessions.values())
        if sessions:
            self._log.write(f"ending {len(sessions)} sessions")
        for session in sessions:
            if session.started:
                session.flush_and_disable()
            else:
                session.disable()
        self._run_until(lambda: self._is_second_signal or not self._active(), END_TIMEOUT_MS)
        for session in self._active():
            session.disable(immediate=True)
        self._complete_files()
        self._run_posted()
        self._run_until(lambda: self._is_second_signal or not self._unread(), READ_TIMEOUT_MS)

    def _complete_files(self) -> None:
        """Wait for the files of sessions; data not written in time is lost, which is logged."""
        self._run_until(lambda: self._is_second_signal or not self._writing(), FILE_TIMEOUT_MS)
        for session in self._writing():
            if session.drain is not None:
                session.drain.give_up()

    def _writing(self) -> list[ServiceTracingSession]:
        sessions = self._service.sessions.values()
        return [
            *self._service.registry.unfinished,
            *(each for each in sessions if each.drain is not None and not each.complete),
        ]

    def _run_posted(self) -> None:
        """Run all posted tasks, such as notifications of consumers."""
        done: list[bool] = []
        self._runner.post(lambda: done.append(True))
        self._run_until(lambda: bool(done))

    def _active(self) -> list[ServiceTracingSession]:
        return [session for session in self._service.sessions.values() if session.active]

    def _unread(self) -> list[ServiceTracingSession]:
        """Return the sessions whose consumer has not read the trace yet."""
        sessions = self._service.sessions.values()
        return [session for session in sessions if session.owner and session.drain is None]

    def _connect_producer(
        self, producer: OutOfProcessProducer, identity: ProducerIdentity, *, shm_fd: int
    ) -> RemoteProducerEndpoint:
        try:
            return self._service.connect_producer(producer, identity, shm_fd=shm_fd)
        except StrettoError as error:
            self._log.write(
                f"refused the producer {identity.name[:SHOWN_NAME]!r} "
                f"(pid {identity.pid}, uid {identity.uid}): {error}"
            )
            raise

    def _on_error(self, error: StrettoError) -> None:
        self._log.write(str(error))

    def _may_connect(self, peer: PeerCredentials) -> bool:
        if self._signals:
            return False
        if self._may_consume(peer):
            return True
        self._log.write(
            f"refused a consumer (pid {peer.pid}, uid {peer.uid}): only this user, root and "
            "the consumers' group (--set-socket-permissions) may read traces"
        )
        return False


def allow_many_descriptors() -> None:
    """Raise the limit of open files.

    A connection needs one descriptor, and for its shared memory briefly a second one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
