"""The bridge: the record page of the Perfetto UI as a consumer of a tracing service.

    page --WebSocket, binary messages--> BridgeSession --bytes--> consumer socket of the service

Both directions are plain streams of bytes, of frames as `ipc.frames` has them; messages begin and
end anywhere. The bridge looks at none of it, and keeps none of it.

Rules
- The service decides by the user id who may be its consumer, and it sees the bridge's: so the
  bridge answers only its own user (`peer_user`), and only the UI's pages (`access`).
- A side that doesn't read makes the other one wait.
- The end of either side is the other's, too; what came before it is still delivered.

Source: ui.md, "On the wire of the bridge".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.errors import TransportError
from stretto.viewer.http_connection import Upgrade
from stretto.viewer.http_request import HttpError
from stretto.viewer.stream import LINGER_MS, Stream
from stretto.viewer.websocket import GOING_AWAY, UNSUPPORTED_DATA, Closed, Data, WebSocket
from stretto.viewer.websocket_handshake import accept_handshake

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.task_runner import TaskRunner
    from stretto.viewer.access import Access
    from stretto.viewer.http_request import Request
    from stretto.viewer.http_response import Response
    from stretto.viewer.stream import StreamEnd

PORT = 8037
"""The only one that the UI's pages may connect to."""
PATH = "/traced"
ADB_PATH = "/adb"

CLOSE_MS = 5000
"""How long a page has to answer a goodbye, and the service to take a page's last words."""


class Bridge:
    """The site of `stretto bridge`.

    Args:
        access: Which pages may connect.
        connect: Makes a connection to the service. Called on the runner's thread: may not wait.
        runner: Where everything runs.
        on_refused: Gets the reason, which no page shows.
    """

    __slots__ = ("_access", "_connect", "_on_refused", "_runner")

    def __init__(
        self,
        access: Access,
        connect: Callable[[], StreamEnd],
        runner: TaskRunner,
        on_refused: Callable[[str], object] = str,
    ) -> None:
        self._access = access
        self._connect = connect
        self._runner = runner
        self._on_refused = on_refused

    def answer(self, request: Request) -> Response | Upgrade:
        """The answer to a page.

        Raises:
            HttpError: It may not connect, asks for something else, or there is no service.
        """
        try:
            return self._upgrade(request)
        except HttpError as error:
            self._on_refused(str(error))
            raise

    def _upgrade(self, request: Request) -> Upgrade:
        if request.path == ADB_PATH:
            raise HttpError(404, f"no Android devices here: this bridge knows {PATH} only")
        if request.path != PATH:
            raise HttpError(404, f"there is no {request.path!r}: this bridge knows {PATH} only")
        self._access.check(request, origin_needed=True)
        fields = accept_handshake(request)
        try:
            end = self._connect()
        except TransportError as error:
            raise HttpError(503, str(error)) from error
        return Upgrade(fields, lambda page, rest, on_end: self._begin(end, page, rest, on_end))

    def _begin(
        self, end: StreamEnd, page: Stream, rest: bytes, on_end: Callable[[], object]
    ) -> None:
        BridgeSession(page, end, self._runner, on_end).begin(rest)


class BridgeSession:
    """One page's connection to the service. Owns the page's stream.

    Args:
        page: After the handshake.
        end: Connected to the service; belongs to this object from now on.
        runner: Where everything runs.
        on_end: Called once, when both sides have ended.
    """

    __slots__ = ("_on_end", "_page", "_runner", "_service", "_timer", "_websocket")

    def __init__(
        self, page: Stream, end: StreamEnd, runner: TaskRunner, on_end: Callable[[], object]
    ) -> None:
        self._runner = runner
        self._on_end = on_end
        self._timer: object | None = None
        self._websocket = WebSocket()
        self._page = page
        self._service = Stream(end, runner, _ServiceSide(self))

    def begin(self, received: bytes) -> None:
        """Start with what came right behind the handshake."""
        self._page.owner = self
        self._page.resume()
        self.on_bytes(memoryview(received))

    # --- StreamOwner of the page

    def on_bytes(self, data: memoryview) -> None:
        for event in self._websocket.receive(data):
            if isinstance(event, Data):
                self._on_data(event)
            elif isinstance(event, Closed):
                # A page that made a mistake may be in the middle of sending more.
                self._say()
                self._page.finish(0 if event.by_peer else LINGER_MS)
        self._say()
        if self._service.congested or self._page.congested:
            self._page.pause()

    def on_drained(self) -> None:
        self._service.resume()
        if not self._service.congested:
            self._page.resume()
        self._hasten_close()

    def on_end(self) -> None:
        if self._service.closed:
            self._end()
        else:
            self._start_timer(self._service)
            self._service.finish(0)

    # --- the service's side

    def on_service_bytes(self, data: memoryview) -> None:
        """The service sent something."""
        if not self._websocket.closing:
            self._websocket.send_binary(bytes(data))
            self._say()
            if self._page.congested:
                self._service.pause()

    def on_service_drained(self) -> None:
        """The service has read what it was sent."""
        if not self._page.congested:
            self._page.resume()

    def on_service_end(self) -> None:
        """The service has hung up."""
        if self._page.closed:
            self._end()
        else:
            self._websocket.close(GOING_AWAY, "the tracing service hung up")
            self._say()
            self._page.resume()
            self._hasten_close()

    # --- both

    def _on_data(self, event: Data) -> None:
        if event.text:
            self._websocket.close(UNSUPPORTED_DATA, "the service understands binary messages only")
            self._hasten_close()
            return
        self._service.write(event.payload)

    def _say(self) -> None:
        self._page.write(self._websocket.take_output())

    def _hasten_close(self) -> None:
        """Once a goodbye is out, its answer is due."""
        if self._websocket.closing and self._page.pending_bytes == 0 and not self._page.closed:
            self._start_timer(self._page)

    def _start_timer(self, stream: Stream) -> None:
        self._stop_timer()
        self._timer = self._runner.post_delayed(stream.close, CLOSE_MS)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._runner.cancel(self._timer)
            self._timer = None

    def _end(self) -> None:
        self._stop_timer()
        self._on_end()


class _ServiceSide:
    """Owns the service's stream for a session."""

    __slots__ = ("_session",)

    def __init__(self, session: BridgeSession) -> None:
        self._session = session

    def on_bytes(self, data: memoryview) -> None:
        self._session.on_service_bytes(data)

    def on_drained(self) -> None:
        self._session.on_service_drained()

    def on_end(self) -> None:
        self._session.on_service_end()
