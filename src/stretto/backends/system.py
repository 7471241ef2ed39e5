"""The system backend: this process as a producer of a tracing service in another process.

    program's threads --events--> shared memory of the service       (native, no thread)
    program's threads --commits--> socket                            (native, no thread)
    [native IPC thread] <--commands-- socket

Connecting is synchronous: when it returns, running sessions record this process. The IPC thread
stops around forks; the child of a fork starts with its own connection, or none.
"""

from __future__ import annotations

from stretto.client import fork
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.ports.producer_memory import PAGE_SIZE, SHM_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from stretto.base.unix_socket import UnixSocket
    from stretto.client.producer_connection import ProducerConnection
    from stretto.client.startup_tracing import StartupTracingSession
    from stretto.protos.config import DataSourceConfig

    T = TypeVar("T")

DEADLINE_MS = 5000.0

_of_parent: list[ProducerIPCClient] = []
"""In the child of a fork: the parent's clients. To free them would copy pages of memory."""


class SystemBackend:
    """A connection to the producer socket of a service.

    Args:
        address: The producer socket: a path, or `@name`.
        name: The name of this process as a producer.
        deadline_ms: Limit in ms for connecting, and separately for the handshake.
        dial: Opens the connection; None: connect to `address`.
        lasting: Whether the connection is kept until the process ends. `stretto.connect()` then
            makes no connection of its own.
    """

    problem = ""

    def __init__(
        self,
        address: str,
        name: str,
        deadline_ms: float = DEADLINE_MS,
        dial: Callable[[], UnixSocket] | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        self.lasting = lasting
        self._address = address
        self._dial = dial
        self._hints = ProducerHints(name, page_size=PAGE_SIZE, shm_size=SHM_SIZE)
        self._deadline_ms = deadline_ms
        self._client: ProducerIPCClient | None = None
        self._producer: ProducerConnection | None = None

    # --- methods of client.backend.Backend

    def connect_producer(self, producer: ProducerConnection) -> None:
        """Connect, and start the data sources that running sessions enable.

        Raises:
            TransportError: There is no service, or the service runs as another user or doesn't
                answer.
            RemoteProtocolError: The service refuses this process.
        """
        client = self._connect(producer)
        producer.attach(client)
        try:
            client.connect_and_wait(self._deadline_ms)
        except BaseException:
            producer.on_disconnect()  # The service may have started data sources already.
            raise
        self._client, self._producer = client, producer
        fork.ask_before.append(client.ask_to_suspend)
        fork.before.append(client.suspend)
        fork.after_in_parent.append(client.resume)

    def _connect(self, producer: ProducerConnection) -> ProducerIPCClient:
        if self._dial is not None:
            return ProducerIPCClient(self._dial(), producer, self._hints)
        return ProducerIPCClient.connect(self._address, producer, self._hints, self._deadline_ms)

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` on the calling thread: requests may be sent from any thread."""
        return function()

    def post(self, function: Callable[[], object]) -> None:
        function()

    @property
    def connected(self) -> bool:
        """Whether this process is connected to the service."""
        return self._client is not None and self._client.connected

    def setup_startup_tracing(
        self,
        session: StartupTracingSession,
        configs: Sequence[DataSourceConfig],
        timeout_ms: float,
    ) -> None:
        """Do nothing: a recorder's session records this process from its start."""

    def close(self) -> None:
        """Stop recording and disconnect. Recorded data stays in the service.

        The IPC thread stops first: otherwise it could start a data source while this thread ends
        it, and the data source would never stop. Data sources end before the disconnection, for two
        reasons: when the connection ends, the service reads the shared memory for the last time;
        and disconnecting calls functions that may be recorded themselves.
        """
        producer, client = self._producer, self._take_client()
        if client is not None and producer is not None:
            client.suspend()
            producer.stop()
            client.disconnect()
            producer.on_disconnect()

    def after_fork_in_child(self) -> None:
        client = self._take_client()
        if client is not None:
            client.abandon()
            _of_parent.append(client)

    def _take_client(self) -> ProducerIPCClient | None:
        client, self._client = self._client, None
        if client is not None:
            fork.ask_before.remove(client.ask_to_suspend)
            fork.before.remove(client.suspend)
            fork.after_in_parent.remove(client.resume)
        return client
