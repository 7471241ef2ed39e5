"""The page server: `http.server` on 127.0.0.1, with limits for each user.

Rules
- Loopback only: from another machine the port is forwarded (`ssh -L`).
- The kernel reports the peer's user before the connection takes a slot and a thread. Without a
  free slot (`connection_slots`) the connection is closed.
- Other users of the machine always get 403, and their requests are not parsed. Their connections
  are closed after `REFUSED_S`.
- A request must arrive within `IDLE_S`. A response has no time limit: the client reads it at its
  own pace.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, SHUT_WR
from socketserver import TCPServer
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from stretto.base.errors import TransportError
from stretto.viewer.access import LOOPBACK
from stretto.viewer.connection_slots import ConnectionSlots
from stretto.viewer.peer_user import connected_user
from stretto.viewer.response import HttpError, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from socket import socket
    from typing import Any

    from stretto.viewer.access import RequestFields
    from stretto.viewer.response import FileBody

IDLE_S = 30.0
LINGER_S = 2.0
"""How long a client has to hang up after its last response."""
REFUSED_S = 2.0
"""How long the connection of a refused user lasts."""
POLL_S = 0.2
"""How often deadlines are checked."""
RECEIVE_BYTES = 64 << 10

_REFUSAL = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
    b"\r\nstretto: another user of this machine started this: it answers only them\n"
)


class Site(Protocol):
    """Answers the requests to a server."""

    def answer(self, method: str, path: str, fields: RequestFields) -> Response:
        """Returns the response to a request.

        Args:
            method: GET, HEAD or OPTIONS.
            path: The decoded path, without the query.
            fields: The request's header fields.

        Raises:
            HttpError: The error that is sent as the response.
        """


class _Connection:
    """The state of an open connection."""

    __slots__ = ("deadline", "user")

    def __init__(self, user: int | None, deadline: float) -> None:
        self.user = user
        self.deadline: float | None = deadline


class PageServer(ThreadingHTTPServer):
    """An HTTP server with one thread for each connection.

    Args:
        port: The port; 0 for any free port.
        users: Ids of the users that are answered.
        clock: Returns the time in seconds.

    Raises:
        TransportError: The port is taken, or not allowed.
    """

    # In newer Pythons the default of http.server lets another server use the same port, on Windows
    # in all of them.
    allow_reuse_port = False
    allow_reuse_address = os.name != "nt"
    daemon_threads = True
    request_queue_size = 64
    site: Site

    def __init__(
        self, port: int, users: Container[int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._slots = ConnectionSlots(users)
        self._lock = Lock()  # The lock guards the slots, which several threads use.
        self._connections: dict[Any, _Connection] = {}
        try:
            super().__init__((LOOPBACK, port), self.handler())
        except OSError as error:
            raise TransportError(f"can't listen on {LOOPBACK}:{port}: {error.strerror}.") from error
        self.port = self.server_port

    def handler(self) -> type[Handler]:
        """Returns the class that handles connections."""
        return Handler

    def serve(self, site: Site) -> None:
        """Answers requests until `shutdown` is called on another thread."""
        self.site = site
        self.serve_forever(POLL_S)

    def set_deadline(self, connection: Any, seconds: float | None) -> None:
        """Closes a connection after a time in s; None to cancel."""
        deadline = None if seconds is None else self._clock() + seconds
        if known := self._connections.get(connection):
            known.deadline = deadline

    # --- overridden methods of http.server

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer.server_bind would query DNS.
        self.server_name, self.server_port = LOOPBACK, self.socket.getsockname()[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        user = connected_user(request)
        with self._lock:
            if not self._slots.take(user):
                return False
        time_s = IDLE_S if self._slots.answers(user) else REFUSED_S
        self._connections[request] = _Connection(user, self._clock() + time_s)
        return True

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._slots.answers(self._connections[request].user):
            super().finish_request(request, client_address)
        else:
            request.sendall(_REFUSAL)
            _await_end(request)

    def shutdown_request(self, request: Any) -> None:
        connection = self._connections.pop(request, None)
        super().shutdown_request(request)
        if connection is not None:
            with self._lock:
                self._slots.release(connection.user)

    def service_actions(self) -> None:
        now = self._clock()
        for end, connection in list(self._connections.items()):
            if connection.deadline is not None and connection.deadline <= now:
                _shut_down(end)

    def server_close(self) -> None:
        super().server_close()
        for end in list(self._connections):
            _shut_down(end)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores an OSError: the client has disconnected, or a file can't be read any more."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection of a user that is answered."""

    protocol_version = "HTTP/1.1"
    default_request_version = (
        "HTTP/1.0"  # http.server would answer HTTP/0.9 with a body without a header.
    )
    disable_nagle_algorithm = True
    server: PageServer
    _on_delivered: Callable[[], object] | None = None

    def handle(self) -> None:
        super().handle()
        self.server.set_deadline(self.connection, LINGER_S)
        _await_end(self.connection)
        if self._on_delivered is not None:
            self._on_delivered()

    def handle_one_request(self) -> None:
        self.server.set_deadline(self.connection, IDLE_S)
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answers a request of any method that sites support."""
        self.server.set_deadline(self.connection, None)
        self.answer(self._answer_without_body)

    do_HEAD = do_OPTIONS = do_GET  # noqa: N815 – the names that http.server looks up

    def _answer_without_body(self, path: str) -> Response:
        _check_body(self.headers)
        return self.server.site.answer(self.command, path, self.headers)

    def answer(self, make_response: Callable[[str], Response]) -> None:
        """Answers with the response that is made of the path, or with the error of making it."""
        try:
            response = make_response(unquote(self.path.partition("?")[0]))
        except HttpError as error:
            # After 413 the client may still send the body. The body isn't read, so the connection
            # can't have another request.
            self.close_connection = self.close_connection or error.status == 413
            response = Response.of(error)
        self._respond(response)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers a request that http.server refuses: it is malformed, or its method is unknown."""
        self.close_connection = True
        self._respond(Response.of(HttpError(code, message or HTTPStatus(code).phrase)))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 – as http.server's
        """Logs nothing."""

    def _respond(self, response: Response) -> None:
        body, delivers = response.body, response.on_delivered is not None
        size = len(body) if isinstance(body, bytes) else body.size
        self.send_response_only(response.status)
        for name, value in response.fields:
            self.send_header(name, value)
        if response.status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(size))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header(
            "Connection", "close" if self.close_connection or delivers else "keep-alive"
        )
        self.end_headers()
        self._send_body(body)
        if self.command != "HEAD":
            self._on_delivered = response.on_delivered

    def _send_body(self, body: bytes | FileBody) -> None:
        if isinstance(body, bytes):
            self.wfile.write(b"" if self.command == "HEAD" else body)
            return
        with closing(body):
            for block in () if self.command == "HEAD" else body.blocks():
                self.wfile.write(block)


def _check_body(fields: RequestFields) -> None:
    sizes = fields.get_all("Content-Length") or ()
    if fields.get_all("Transfer-Encoding") or any(size.strip("0 ") for size in sizes):
        raise HttpError(413, "no request to this server may have a body")


def _await_end(connection: socket) -> None:
    """Discards received data until the client disconnects, or the deadline passes.

    If the connection were closed while the client is sending, the kernel would reset it, and the
    client would lose the response.
    """
    connection.shutdown(SHUT_WR)
    while connection.recv(RECEIVE_BYTES):
        pass


def _shut_down(connection: Any) -> None:
    """Shuts the connection down; the connection's thread then closes the socket."""
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        pass  # The connection has ended meanwhile.
