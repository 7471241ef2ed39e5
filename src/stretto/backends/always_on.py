"""The backend of `stretto.connect()`: a producer of the machine's service until the process ends.

    retrying ---a service accepts---> connected, sessions start and stop
       ^                                 |
       +--------disconnected-------------+          close() ends both states

A missing or failing service neither blocks the program nor raises an exception in it. While
connected, the IPC thread sleeps in the kernel; otherwise a timer retries with growing pauses. After
a fork, the child gets its own connection, or retries on its own.

Startup tracing (`client.startup_tracing`) writes into memory of this process. The next connection
offers that memory to its service. If this process is connected already, but without shared memory,
it connects again. Nothing is lost: the old connection has transported no data.
"""

from __future__ import annotations

from time import monotonic, sleep

from stretto import _native
from stretto.backends.system import SystemBackend
from stretto.base.errors import StrettoError, TransportError
from stretto.client import fork
from stretto.client.backend import SYSTEM
from stretto.client.tracing import tracing
from stretto.client.track_event.process_name import producer_name
from stretto.ipc.alarm import Alarm
from stretto.ipc.retry_timer import RetryTimer
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.ports.producer_memory import PAGE_SIZE, SHM_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from stretto.client.backend import Prepare, ServiceConnection
    from stretto.client.producer_connection import ProducerConnection
    from stretto.client.startup_tracing import StartupTracingSession
    from stretto.protos.config import DataSourceConfig

    T = TypeVar("T")

WAIT_PERIOD_S = 0.002


def connect_to_service(address: str, prepare: Prepare | None) -> ServiceConnection:
    """Connect this process to a service until the process ends, unless a recorder has connected it.

    Args:
        address: The producer socket of the service: a path, or `@name`.
        prepare: Called with a new connection before the first attempt to connect.

    Returns:
        The new connection, or the existing connection to a recorder: with two connections, each
        event would be recorded twice.
    """
    before = tracing.connected(SYSTEM)
    if isinstance(before, SystemBackend):
        if before.lasting:
            return before
        before.close()  # This connection was made by a session that this process has started.
        tracing.forget(SYSTEM)
    backend = AlwaysOnBackend(address, producer_name(), prepare)
    tracing.connect(SYSTEM, backend)
    return backend


class AlwaysOnBackend:
    """Keeps this process connected to the producer socket of a service.

    Args:
        address: The producer socket: a path, or `@name`.
        name: The name of this process as a producer.
        before: Called before the first attempt to connect.
    """

    lasting = False
    """False, because `stretto.disconnect()` closes this connection."""

    def __init__(
        self,
        address: str,
        name: str,
        before: Prepare | None = None,
    ) -> None:
        self._before = before
        self._address = address
        self._hints = ProducerHints(name, page_size=PAGE_SIZE, shm_size=SHM_SIZE)
        self._timer = RetryTimer(self._attempt)
        self._alarm = Alarm(self._expire)
        self._client: ProducerIPCClient | None = None
        self._producer: ProducerConnection | None = None
        self._closed = False
        self._joined = False
        self.problem = ""
        """Why there is no connection; "" if there is one."""

    # --- methods of client.backend.Backend

    def connect_producer(self, producer: ProducerConnection) -> None:
        """Start connecting; return at once."""
        self._producer = producer
        producer.on_gone = self._on_gone
        fork.before.append(self._suspend)
        fork.after_in_parent.append(self._resume)
        try:
            if self._before is not None:
                self._before(self)
        finally:
            self._timer.start()

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` on the calling thread: requests may be sent from any thread."""
        return function()

    def post(self, function: Callable[[], object]) -> None:
        """Run `function` once the service has handled earlier requests.

        A starting program creates many categories. Due to this delay one message has them all.
        """
        client = self._client
        if client is not None and client.connected:
            client.sync(function)  # type: ignore[arg-type]
        else:
            function()

    @property
    def connected(self) -> bool:
        """Whether this process is connected to the service."""
        return self._client is not None and self._client.connected

    def wait(self, timeout_s: float) -> None:
        """Wait until new sessions record this process, or `problem` is set."""
        end = monotonic() + timeout_s
        while not self._joined and not self.problem and monotonic() < end:
            sleep(WAIT_PERIOD_S)

    def close(self) -> None:
        """Stop recording, and disconnect or end the retries. Recorded data stays in the service."""
        if self._closed:
            return
        self._forget()
        if self._producer is not None and self._producer.startup is not None:
            self._producer.startup.end_all()
        self._timer.close()
        self._alarm.close()
        client, self._client = self._client, None
        producer = self._producer
        if client is not None and producer is not None:
            # Stop the IPC thread first: it could start a data source that is ending.
            client.suspend()
            # End the data sources before the disconnection: at the disconnection the service reads
            # the shared memory for the last time.
            producer.stop()
            client.disconnect()
            producer.on_disconnect()

    def after_fork_in_child(self) -> None:
        if not self._closed:
            self._forget()
            self._timer.abandon()
            self._alarm.abandon()
            if self._client is not None:
                self._client.abandon()

    def _forget(self) -> None:
        self._closed = True
        fork.before.remove(self._suspend)
        fork.after_in_parent.remove(self._resume)

    def setup_startup_tracing(
        self,
        session: StartupTracingSession,
        configs: Sequence[DataSourceConfig],
        timeout_ms: float,
    ) -> None:
        """Start recording now, for a service that may set up the same data sources later.

        Args:
            session: The startup session.
            configs: Configs of the data sources to start.
            timeout_ms: How long to wait for the service, in ms.

        Raises:
            TransportError: The memory could not be allocated.
        """
        producer = self._producer
        if producer is None or self._closed:
            session.abort()
            return
        has_memory = producer.setup_startup_tracing(
            session, configs, timeout_ms, _native.boottime_ns
        )
        if has_memory:
            self._reconnect()
        if (ms := self._expire()) is not None:
            self._alarm.set(ms)

    def _expire(self) -> float | None:
        startup = self._producer and self._producer.startup
        return startup.expire() if startup else None

    def _reconnect(self) -> None:
        """Disconnect, and connect again at once."""
        self._timer.suspend()  # `suspend` waits for a running attempt to connect.
        client, self._client = self._client, None
        if client is not None and self._producer is not None:
            client.disconnect()
            self._producer.on_disconnect()
            self.problem = ""
        self._timer.resume()

    # --- connecting; run on the timer's thread

    def _attempt(self) -> bool:
        broken, self._client = self._client, None
        if broken is not None:
            broken.disconnect()
        try:
            self._connect()
        except (StrettoError, OSError) as error:
            self.problem = str(error)
            return False
        return True

    def _connect(self) -> None:
        if self._producer is None:
            return
        producer, hints = self._producer, self._hints
        memory = producer.startup.memory if producer.startup is not None else None
        client = ProducerIPCClient.connect(
            self._address, producer, hints, timeout_ms=0, memory=memory
        )
        producer.attach(client)
        try:
            client.connect_soon(self._on_connected)
        except TransportError:
            client.disconnect()
            raise
        self._client = client

    # --- run on the IPC thread

    def _on_connected(self) -> None:
        self.problem = ""
        self._joined = True
        self._timer.reset()

    def _on_gone(self) -> None:
        self._joined = False
        if not self._closed:
            self.problem = self.problem or "the tracing service disconnected: its log may say why"
            self._timer.start()

    # --- around forks: the timer starts the other threads, so it has to stop before them

    def _suspend(self) -> None:
        self._timer.suspend()
        self._alarm.suspend()
        if self._client is not None:
            self._client.suspend()

    def _resume(self) -> None:
        if self._client is not None:
            self._client.resume()
        self._alarm.resume()
        self._timer.resume()
