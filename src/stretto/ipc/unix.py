"""Services on a unix socket, with one call for the server and one for the client.

    server = serve("shop.sock", [HostedService(SHOP, handlers)], runner)
    client = connect("shop.sock", runner); client.bind(SHOP, on_bound)

`serve` and `connect` combine `UnixListener`, `Listener`, `Connection`, `HostConnection` and
`Client`. A program that needs the credentials of a peer, descriptors or other sockets uses these
classes itself.

Source: docs/formats/ipc.md, "Binding and calls".
"""

from __future__ import annotations

from stretto import _native
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.ipc.client import Client
from stretto.ipc.connection import Connection
from stretto.ipc.host import HostConnection
from stretto.ipc.listener import Listener

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.base.stream_socket import StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.client import OnBound
    from stretto.ipc.host import HostedService
    from stretto.ipc.service import ServiceDescriptor


def _nothing() -> None:
    pass


class Server:
    """Offers services to every client that connects to a socket. Created by `serve`."""

    def __init__(
        self,
        listener: UnixListener,
        services: Sequence[HostedService],
        runner: TaskRunner,
        on_disconnected: Callable[[], object],
    ) -> None:
        self._services = tuple(services)
        self._runner = runner
        self._on_disconnected = on_disconnected
        self._connections: set[Connection] = set()
        self._listener = Listener(listener, runner, self._accept)

    @property
    def client_count(self) -> int:
        """Number of connected clients."""
        return len(self._connections)

    def close(self) -> None:
        """Stop listening, remove the socket's file and disconnect all clients."""
        self._listener.close()
        for connection in tuple(self._connections):
            connection.close()

    def _accept(self, end: StreamSocket) -> None:
        def on_closed() -> None:
            self._connections.discard(connection)
            self._on_disconnected()

        connection = Connection(end, self._runner, _native.SendQueue(end.fileno()), on_closed)
        self._connections.add(connection)
        host = HostConnection(self._services, connection, connection.give_up, end=connection)
        connection.start(host)


class ClientConnection:
    """A connection to a server. Created by `connect`."""

    def __init__(
        self, end: UnixSocket, runner: TaskRunner, on_disconnected: Callable[[], object]
    ) -> None:
        queue = _native.SendQueue(end.fileno())
        self._connection = Connection(end, runner, queue, on_disconnected)
        self._client = Client(self._connection, end=self._connection)
        self._connection.start(self._client)

    @property
    def connected(self) -> bool:
        """Whether the connection is open."""
        return not self._connection.closed

    def bind(self, descriptor: ServiceDescriptor, on_bound: OnBound, *, flow_key: int = 0) -> None:
        """Request a service of the server by its name.

        Args:
            descriptor: The service.
            on_bound: Called on the runner's thread with a `ServiceProxy`; with None if the server
                has no such service or has disconnected.
            flow_key: Key of the connection for flow ids, if the kernel doesn't provide one
                (`stretto.flows.channel_key.nonce()`); 0 for none.
        """
        self._client.bind(descriptor, on_bound, flow_key=flow_key)

    def close(self) -> None:
        """Disconnect. Pending calls receive None."""
        self._connection.close()


def serve(
    path: str,
    services: Sequence[HostedService],
    runner: TaskRunner,
    *,
    mode: int = 0o600,
    on_disconnected: Callable[[], object] = _nothing,
) -> Server:
    """Offer services on a unix socket.

    Args:
        path: Path of the socket, or `@name` for an abstract one. The file of a server that has
            ended is replaced.
        services: The services with their handlers, which are shared by all clients.
        runner: Runs the handlers.
        mode: Permissions of the socket's file, which control who may connect.
        on_disconnected: Called each time a client has disconnected.

    Returns:
        The listening server.

    Raises:
        TransportError: The path can't be used, or another server listens there.
    """
    return Server(UnixListener(path, mode), services, runner, on_disconnected)


def connect(
    path: str,
    runner: TaskRunner,
    *,
    on_disconnected: Callable[[], object] = _nothing,
    timeout_ms: float = 5000,
) -> ClientConnection:
    """Connect to a server.

    Args:
        path: Path of its socket, or `@name`.
        runner: Runs the callbacks.
        on_disconnected: Called once, when the connection has ended from either side.
        timeout_ms: Time in ms to wait while too many clients are connecting.

    Raises:
        TransportError: No server listens there, or it can't be reached.
    """
    return ClientConnection(UnixSocket.connect(path, timeout_ms), runner, on_disconnected)
