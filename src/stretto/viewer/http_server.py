"""The HTTP server: a listening socket on 127.0.0.1, and its connections.

Rules
- Loopback, always: who wants it from elsewhere forwards the port (`ssh -L`), and is then a user
  of this machine.
- Other users of the machine get 403, whatever they ask, and `REFUSED_MS` to take it.
- Who is at the other end is known before a connection takes a slot (`connection_slots`); where
  none is left it is hung up on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.ipc.listener import Listener
from stretto.viewer.connection_slots import ConnectionSlots
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

REFUSED_MS = 2000
"""How long a connection lasts that is refused, from its first moment to its last."""


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

    __slots__ = ("_connections", "_listener", "_runner", "_slots", "_socket", "port")

    def __init__(self, port: int, runner: TaskRunner, users: Container[int]) -> None:
        self._socket = LoopbackListener(port)
        self.port = self._socket.port
        self._runner = runner
        self._slots = ConnectionSlots(users)
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
        user = end.peer_user() if isinstance(end, LoopbackSocket) else None
        if not self._slots.take(user):
            end.close()
            return
        known = self._slots.answers(user)
        deadline: object | None = None

        def on_end() -> None:
            self._connections.discard(connection)
            self._slots.release(user)
            if deadline is not None:
                self._runner.cancel(deadline)

        connection = HttpConnection(end, self._runner, site if known else Refusal(), on_end)
        self._connections.add(connection)
        if not known:
            deadline = self._runner.post_delayed(connection.close, REFUSED_MS)
