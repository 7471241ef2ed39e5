"""Sessions on the machine's tracing service, started by this process.

    program's threads --call--> [thread: task runner, a ConsumerIPCClient per session] <--> service

The sessions record this process, too: with its first session the process becomes a producer of the
service, unless it became a producer before, by `stretto.connect()`. After a fork the connections
belong to the parent.
"""

from __future__ import annotations

from stretto.backends.always_on import AlwaysOnBackend
from stretto.backends.runner_thread import RunnerThread
from stretto.backends.system import DEADLINE_MS, SystemBackend
from stretto.base.socket_names import consumer_socket, producer_socket
from stretto.client.backend import SYSTEM
from stretto.client.tracing import tracing
from stretto.client.track_event.process_name import producer_name
from stretto.ports.consumer_ipc_client import ConsumerIPCClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from stretto.ports.endpoints import Consumer, ConsumerEndpoint

    T = TypeVar("T")


class SystemSessions:
    """The connections to the consumer socket of the machine's service."""

    def __init__(self) -> None:
        self._thread = RunnerThread()
        self._clients: list[ConsumerIPCClient] = []

    # --- methods of client.backend.SessionBackend

    def prepare(self) -> None:
        """Make this process a producer of the service.

        Raises:
            TransportError: There is no service, or the service runs as another user or doesn't
                answer.
        """
        joined = tracing.connected(SYSTEM)
        if isinstance(joined, SystemBackend) and not joined.connected:
            joined.close()  # The connection's service has ended; another service may have started.
            tracing.forget(SYSTEM)
            joined = None
        if isinstance(joined, AlwaysOnBackend):
            joined.wait(DEADLINE_MS / 1000)
        elif joined is None:
            tracing.connect(SYSTEM, SystemBackend(producer_socket(), producer_name()))

    def connect_consumer(self, consumer: Consumer) -> ConsumerEndpoint:
        """Open a connection; each connection has one session.

        Raises:
            TransportError: There is no service, the service runs as another user, or refuses this
                user.
        """
        client = ConsumerIPCClient.connect(consumer_socket(), consumer, self._thread.runner)
        self._clients = [each for each in self._clients if not each.closed]
        self._clients.append(client)
        return client

    def call(self, function: Callable[[], T]) -> T:
        return self._thread.call(function)

    def post(self, function: Callable[[], object]) -> None:
        self._thread.runner.post(function)

    def after_fork_in_child(self) -> None:
        self._thread.abandon()
        for client in self._clients:
            client.abandon()
