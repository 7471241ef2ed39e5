"""The HTTP server: a listening socket on 127.0.0.1, and its connections.

Rules
- Loopback, always: who wants it from elsewhere forwards the port (`ssh -L`), and is then a user
  of this machine.
- Other users of the machine get 403, whatever they ask.
- There are at most `MAX_CONNECTIONS`; one more is hung up on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.ipc.listener import Listener
from stretto.viewer.http_connection import HttpConnection
from stretto.viewer.http_request import HttpError
from stretto.viewer.loopback import LoopbackListener, LoopbackSocket

if TYPE_CHECKING:
    from collections.abc import Container

    from stretto.base.stream_socket import StreamSocket
    from stretto.base.task_runner import TaskRunner
    from stretto.viewer.http_connection import Site, Upgrade
    from stretto.viewer.http_request import Request
    from stretto.viewer.http_response import Response

MAX_CONNECTIONS = 64


class Refusal:
    """The site that strangers see."""

    __slots__ = ()

    def answer(self, request: Request) -> Response | Upgrade:
        """No.

        Raises:
            HttpError: Always.
        """
        raise HttpError(403, "another user of this machine started this: it answers only them")


class HttpServer:
    """See above.

    Args:
        port: 0 for any free one.
        runner: Where everything runs.
        users: Ids of the users that are answered.

    Raises:
        TransportError: The port is taken, or not allowed.
    """

    __slots__ = ("_connections", "_listener", "_runner", "_socket", "_users", "port")

    def __init__(self, port: int, runner: TaskRunner, users: Container[int]) -> None:
        self._socket = LoopbackListener(port)
        self.port = self._socket.port
        self._runner = runner
        self._users = users
        self._listener: Listener | None = None
        self._connections: set[HttpConnection] = set()

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._connections)

    def serve(self, site: Site) -> None:
        """Answer from now on: the site knows the port by now. Call it once."""
        self._listener = Listener(self._socket, self._runner, lambda end: self._connect(end, site))

    def close(self) -> None:
        """Stop listening and hang up on everybody."""
        if self._listener is None:
            self._socket.close()
        else:
            self._listener.close()
        for connection in list(self._connections):
            connection.close()

    def _connect(self, end: StreamSocket, site: Site) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            end.close()
            return
        known = isinstance(end, LoopbackSocket) and end.peer_user() in self._users
        connection = HttpConnection(
            end,
            self._runner,
            site if known else Refusal(),
            lambda: self._connections.discard(connection),
        )
        self._connections.add(connection)
