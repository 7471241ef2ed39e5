"""The service's side of a port: its listeners and their accepted connections.

This is the base class of `ProducerIPCService` and `ConsumerIPCService`.
"""

from __future__ import annotations

from stretto.base.errors import RemoteProtocolError
from stretto.ipc.connection import Connection
from stretto.ipc.listener import Listener, ignore
from stretto.ipc.turns import Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.errors import StrettoError
    from stretto.base.stream_socket import StreamListener, StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.connection import SocketOutbox


class IPCService:
    """Listeners and their accepted connections.

    Args:
        runner: The task runner of the service.
        make_queue: Makes the outgoing queue on a socket: by default `_native.SendQueue`.
        on_error: Called with an error, which has the reason, when accepting fails, when a peer is
            disconnected, and when requests of a peer are rejected.
    """

    def __init__(
        self,
        runner: TaskRunner,
        make_queue: Callable[[int], SocketOutbox] | None = None,
        on_error: Callable[[StrettoError], object] = ignore,
    ) -> None:
        self._runner = runner
        self._make_queue = make_queue or _native_queue
        self._on_error = on_error
        self._turns = Turns(runner)
        self._listeners: list[Listener] = []
        self._connections: set[Connection] = set()

    def _accept_from(
        self, socket: StreamListener, accept: Callable[[StreamSocket], object]
    ) -> None:
        self._listeners.append(Listener(socket, self._runner, accept, self._on_error))

    def _connection(
        self,
        end: StreamSocket,
        kind: str,
        pid: int,
        on_closed: Callable[[], object],
        *,
        urgent: bool = False,
    ) -> Connection:
        """Create a connection and keep a reference to it until it closes.

        Args:
            end: The connected socket.
            kind: "producer" or "consumer", for messages.
            pid: The peer's process id; 0 over a network.
            on_closed: Called once the connection is closed.
            urgent: Whether the connection is served before connections that are not urgent.
        """

        def closed() -> None:
            self._connections.discard(made)
            on_closed()

        def on_cut_off(reason: str) -> None:
            self._on_error(RemoteProtocolError(f"disconnected a {kind}, {_who(pid)}: {reason}"))

        made = Connection(
            end,
            self._runner,
            self._make_queue(end.fileno()),
            closed,
            on_cut_off,
            turns=self._turns,
            urgent=urgent,
        )
        self._connections.add(made)
        return made

    def _on_rejected(self, kind: str, pid: int) -> Callable[[str], object]:
        """Return a callback that reports why a request of this peer was rejected."""

        def on_malformed(reason: str) -> None:
            self._on_error(
                RemoteProtocolError(f"rejected requests of a {kind}, {_who(pid)}: {reason}")
            )

        return on_malformed

    @property
    def connection_count(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    def close(self) -> None:
        """Close all listeners and connections."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for connection in tuple(self._connections):
            connection.close()


def _who(pid: int) -> str:
    return f"process {pid}" if pid else "the network"


def _native_queue(fd: int) -> SocketOutbox:
    from stretto import _native

    return _native.SendQueue(fd)
