"""The bridge: the record page of the Perfetto UI as a consumer of a tracing service.

    page --WebSocket, binary messages--> Bridge --bytes--> consumer socket of the service

Both directions are byte streams of frames (`ipc.frames`); a WebSocket message may contain any part
of the stream. The bridge copies the bytes; it parses them only to find a config without categories
(`sdk_config`). The library `websockets` implements
the WebSocket protocol (RFC 6455).

Rules
- The service checks the user id of its consumers, but for every page it sees the bridge's user id.
  So the bridge itself answers only its own user (`peer_user`), and only the UI's pages (`access`).
- If one side doesn't read, the bridge stops reading from the other side.
- When one side closes its connection, the data that this side sent before is delivered, and then
  the other connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from stretto.base.errors import TransportError
from stretto.viewer.access import LOOPBACK, Access
from stretto.viewer.connection_slots import MAX_CONNECTIONS, ConnectionSlots
from stretto.viewer.peer_user import connected_user
from stretto.viewer.response import HttpError
from stretto.viewer.sdk_config import ADVICE, lacks_categories

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from websockets.http11 import Request, Response

PATH = "/traced"
ADB_PATH = "/adb"

MAX_MESSAGE_BYTES = 1 << 20
RECEIVE_BYTES = 64 << 10
HANDSHAKE_S = 30
CLOSE_S = 5
"""How long a page has to answer a close frame, and the service to take a page's last bytes."""
REFUSED_S = 2
"""How long a refused connection lasts."""

_SILENT = logging.Logger("stretto.bridge", logging.CRITICAL)
"""A logger without output: the library would log each failed handshake with a traceback."""


class PageConnection(ServerConnection):
    """A page's connection. It takes one of its user's slots before any of its data is read.

    Attributes:
        answered: Whether requests of the peer's user are answered.
        service: The connection to the service, from the handshake on.
    """

    answered = False
    service: socket.socket | None = None

    def __init__(self, slots: ConnectionSlots, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._slots = slots
        self._user: int | None = None
        self._has_slot = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._user = connected_user(transport.get_extra_info("socket"))
        self.answered = self._slots.answers(self._user)
        self._has_slot = self._slots.take(self._user)
        if not self._has_slot:
            self.transport.abort()
        elif not self.answered:
            self.loop.call_later(REFUSED_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.release_slot()
        if self.service is not None:
            self.service.close()

    def release_slot(self) -> None:
        """Release the slot. Idempotent."""
        if self._has_slot:
            self._has_slot = False
            self._slots.release(self._user)


class Bridge:
    """The server of `stretto bridge`.

    Args:
        connect: Connects to the service without waiting; raises TransportError.
        users: Ids of the users that are answered.
        origins: Origins of pages that may connect, such as `https://ui.perfetto.dev`.
        on_refused: Called with the reason of each refusal, which browsers don't show.
        advise: Called with advice: what the user should change on a page.
    """

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        users: Container[int],
        origins: Sequence[str],
        on_refused: Callable[[str], object] = str,
        advise: Callable[[str], object] = str,
    ) -> None:
        self._connect = connect
        self._slots = ConnectionSlots(users)
        self._origins = origins
        self._on_refused = on_refused
        self._advise = advise
        self._refused: deque[asyncio.Transport] = deque()

    async def start(self, port: int) -> int:
        """Starts serving on 127.0.0.1, until the event loop ends.

        Args:
            port: The port; 0 for any free port.

        Returns:
            The port.

        Raises:
            TransportError: The port is taken, or not allowed.
            ConfigError: An origin is malformed.
        """
        try:
            listening = socket.create_server((LOOPBACK, port))
        except OSError as error:
            raise TransportError(f"can't listen on {LOOPBACK}:{port}: {error.strerror}.") from error
        with ExitStack() as undo:
            undo.callback(listening.close)
            port = int(listening.getsockname()[1])
            self._access = Access(port, self._origins)
            self._server = await self._serve(listening)
            undo.pop_all()
        return port

    async def _serve(self, listening: socket.socket) -> Server:
        return await serve(
            self._relay,
            sock=listening,
            process_request=self._process_request,
            create_connection=partial(PageConnection, self._slots),  # type: ignore[arg-type]
            compression=None,
            server_header=None,
            open_timeout=HANDSHAKE_S,
            ping_interval=None,
            close_timeout=CLOSE_S,
            max_size=MAX_MESSAGE_BYTES,
            write_limit=0,  # With this limit, `send` waits until the kernel has accepted all data.
            logger=_SILENT,
        )

    def _process_request(self, page: ServerConnection, request: Request) -> Response | None:
        assert isinstance(page, PageConnection)
        try:
            self._check(page, request)
            page.service = self._connect()
        except (HttpError, TransportError) as error:
            self._on_refused(str(error))
            self._let_expire(page)
            status = error.status if isinstance(error, HttpError) else 503
            return page.respond(status, f"stretto: {error}\n")
        return None

    def _let_expire(self, page: PageConnection) -> None:
        """Release the slot of a page that gets an error; disconnect the page after a time-out.

        Any page of the user's browser can open a connection. The origin of the page is checked
        later. A refused page must not occupy the connections that the UI needs.
        """
        page.release_slot()
        page.loop.call_later(REFUSED_S, page.transport.abort)
        self._refused.append(page.transport)
        if len(self._refused) > MAX_CONNECTIONS:
            self._refused.popleft().abort()

    def _check(self, page: PageConnection, request: Request) -> None:
        if not page.answered:
            raise HttpError(403, "another user of this machine started this: it answers only them")
        path = request.path.partition("?")[0]
        if path == ADB_PATH:
            raise HttpError(404, f"no Android devices here: this bridge knows {PATH} only")
        if path != PATH:
            raise HttpError(404, f"there is no {path!r}: this bridge knows {PATH} only")
        self._access.check(request.headers, origin_needed=True)

    async def _relay(self, page: ServerConnection) -> None:
        """Copies in both directions until one side has closed its connection."""
        assert isinstance(page, PageConnection)
        service, page.service = page.service, None
        reader, writer = await asyncio.open_unix_connection(sock=service)
        to_service = asyncio.create_task(_copy_to_service(page, writer, self._advise))
        to_page = asyncio.create_task(_copy_to_page(reader, page))
        try:
            await page.wait_closed()
            await asyncio.wait([to_service], timeout=CLOSE_S)
        finally:
            to_service.cancel()
            to_page.cancel()
            writer.transport.abort()


async def _copy_to_service(
    page: ServerConnection, writer: asyncio.StreamWriter, advise: Callable[[str], object]
) -> None:
    """Copies messages until the page disconnects, then ends the connection to the service."""
    with suppress(ConnectionError):  # The service has disconnected: `_copy_to_page` reports it.
        with suppress(ConnectionClosed):
            while True:
                message = await page.recv()
                if isinstance(message, str):
                    reason = "the service understands binary messages only"
                    await page.close(CloseCode.UNSUPPORTED_DATA, reason)
                    break
                if lacks_categories(message):
                    advise(ADVICE)
                writer.write(message)
                await writer.drain()
        writer.close()
        await writer.wait_closed()


async def _copy_to_page(reader: asyncio.StreamReader, page: ServerConnection) -> None:
    """Copies bytes until the service disconnects, then closes the page's connection."""
    with suppress(ConnectionClosed):
        with suppress(ConnectionError):
            while data := await reader.read(RECEIVE_BYTES):
                await page.send(data)
        await page.close(CloseCode.GOING_AWAY, "the tracing service hung up")
