"""One connection of the HTTP server: requests in their order, keep-alive, big bodies, upgrades.

    stream --bytes--> RequestReader --Request--> site --Response | Upgrade--> stream

Rules
- One request at a time: while its response is on the way nothing is read.
- A file is read as fast as the client takes it, a block at a time.
- A connection on which nothing was asked for some time is closed: idle ones, and those that send
  their request byte by byte.
- After an upgrade the stream is another owner's.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from stretto.base.errors import TransportError
from stretto.viewer.http_request import HttpError, Request, RequestReader
from stretto.viewer.http_response import Fields, FileBody, Response, encode_head
from stretto.viewer.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.task_runner import TaskRunner
    from stretto.viewer.stream import StreamEnd

BLOCK_BYTES = 256 << 10
IDLE_MS = 30_000


class Upgrade:
    """The answer that ends HTTP on a connection.

    Args:
        fields: Of the response 101.
        take_over: Gets the stream, the bytes that came after the request, and what to call when
            the connection has ended. It has to make itself the stream's owner.
    """

    __slots__ = ("fields", "take_over")

    def __init__(
        self, fields: Fields, take_over: Callable[[Stream, bytes, Callable[[], object]], object]
    ) -> None:
        self.fields = fields
        self.take_over = take_over


class Site(Protocol):
    """What a server answers."""

    def answer(self, request: Request) -> Response | Upgrade:
        """The answer to a request.

        Raises:
            HttpError: Becomes a response.
        """


class HttpConnection:
    """See above. The owner of its stream.

    Args:
        end: Belongs to this object from now on.
        runner: Where everything runs.
        site: Answers.
        on_end: Called once, when the connection has ended, as HTTP or as what it became.
    """

    __slots__ = ("_body", "_idle", "_keep_alive", "_on_delivered", "_on_end", "_pumping",
                 "_reader", "_runner", "_site", "_stream")  # fmt: skip

    def __init__(
        self, end: StreamEnd, runner: TaskRunner, site: Site, on_end: Callable[[], object]
    ) -> None:
        self._runner = runner
        self._site = site
        self._on_end = on_end
        self._reader = RequestReader()
        self._keep_alive = True
        self._body: FileBody | None = None
        self._on_delivered: Callable[[], object] | None = None
        self._pumping = False
        self._stream = Stream(end, runner, self)
        self._idle: object | None = None
        self._start_idle()

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    # --- StreamOwner

    def on_bytes(self, data: memoryview) -> None:
        self._reader.receive(data)
        self._advance()

    def on_drained(self) -> None:
        if self._body is None:
            self._advance()
        else:
            self._pump()

    def on_end(self) -> None:
        self._stop_idle()
        if self._on_delivered is not None and self._body is None and self._stream.delivered:
            self._on_delivered()
        self._close_body()
        self._on_end()

    # --- requests

    def _advance(self) -> None:
        """Answer what has been asked, until an answer takes time."""
        while self._keep_alive and self._body is None:
            if self._stream.congested:
                self._stream.pause()
                return
            self._stream.resume()
            try:
                request = self._reader.next_request()
            except HttpError as error:
                self._respond(Response.of(error), with_body=True, keep_alive=False)
                return
            if request is None:
                return
            self._answer(request)

    def _answer(self, request: Request) -> None:
        self._stop_idle()
        try:
            answer = self._site.answer(request)
        except HttpError as error:
            answer = Response.of(error)
        if isinstance(answer, Upgrade):
            self._upgrade(answer)
        else:
            keep_alive = request.keep_alive and answer.on_delivered is None
            self._respond(answer, with_body=request.method != "HEAD", keep_alive=keep_alive)

    def _upgrade(self, upgrade: Upgrade) -> None:
        self._keep_alive = False
        fields = (*upgrade.fields, ("Connection", "Upgrade"))
        self._stream.write(encode_head(HTTPStatus.SWITCHING_PROTOCOLS, fields))
        upgrade.take_over(self._stream, self._reader.take_rest(), self._on_end)

    # --- responses

    def _respond(self, response: Response, *, with_body: bool, keep_alive: bool) -> None:
        self._keep_alive = keep_alive
        self._on_delivered = response.on_delivered if with_body else None
        self._stream.write(response.head(keep_alive=keep_alive))
        if isinstance(response.body, bytes):
            self._stream.write(response.body if with_body else b"")
            self._end_response()
        else:
            self._body = response.body
            if with_body:
                self._stream.pause()
                self._runner.post(self._pump)
            else:
                self._close_body()
                self._end_response()

    def _pump(self) -> None:
        """Send a block of the file, and another one soon."""
        if self._body is None or self._pumping or self._stream.closed:
            return
        if self._stream.congested:
            return
        try:
            self._stream.write(self._body.read(BLOCK_BYTES))
        except TransportError:
            self._stream.close()
            return
        if self._body.rest:
            self._pumping = True
            self._runner.post(self._pump_again)
        else:
            self._close_body()
            self._end_response()
            self._advance()

    def _pump_again(self) -> None:
        self._pumping = False
        self._pump()

    def _close_body(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            body.close()

    def _end_response(self) -> None:
        if self._keep_alive:
            self._start_idle()
        else:
            self._stream.finish()

    # --- time

    def _start_idle(self) -> None:
        self._stop_idle()
        self._idle = self._runner.post_delayed(self._stream.finish, IDLE_MS)

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._runner.cancel(self._idle)
            self._idle = None
