"""Flows of WSGI applications: a middleware.

    app = FlowMiddleware(app)

Each request becomes a slice, joined to the client's slice as in `stretto.flows.asgi`. The slice
lasts until the application has returned its body.

If the body is generated piece by piece (by a generator, for example), each piece is a separate
slice, `body`. The call of the body's `close` is such a slice, too. The time between the pieces
belongs to the server. These slices aren't messages, and have no `role`.

The reply counts as sent when the server gets the first piece, because the server writes the header
fields together with this piece.
"""

from __future__ import annotations

from collections.abc import Sized

from stretto.base import rpc_hooks
from stretto.flows.exchange import FLOW_HEADER, TRACEPARENT, key_of, stamp
from stretto.flows.own_frames import without_own_frames
from stretto.flows.routes import server_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from stretto.flows.exchange import Exchange


_END = b"\0" * 2
"""Marks the end of the pieces; compared by identity."""


class FlowMiddleware:
    """Traces the requests of a WSGI application.

    Args:
        app: The application.
        category: The category of the slices.
        paths: Whether slices are named by method and path; else by the method alone, or by the
            route (see `stretto.flows.routes`).
    """

    def __init__(self, app: WSGIApplication, *, category: str = "http", paths: bool = True) -> None:
        self._switch = rpc_hooks.switch(category)
        self._app = app
        self._category = category
        self._paths = paths

    @without_own_frames
    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Handle a request."""
        if not self._switch.enabled:
            return self._app(environ, start_response)
        method = str(environ.get("REQUEST_METHOD", ""))
        path = str(environ.get("PATH_INFO", "")) if self._paths else None
        key = key_of({name: _header(environ, name) for name in (TRACEPARENT, FLOW_HEADER)})
        exchange = server_end(self._category, method, path, key)
        with exchange:
            body = self._app(environ, start_response)
            if _made_piece_by_piece(body, environ):
                return _Body(body, exchange)
            exchange.reply(stamp())
            return body


class _Body:
    """A body whose pieces are generated when the server reads them."""

    def __init__(self, body: Iterable[bytes], exchange: Exchange) -> None:
        self._body = body
        self._pieces = iter(body)
        self._exchange = exchange
        self._has_replied = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        with self._exchange.step("body"):
            piece = next(self._pieces, _END)
        if piece:
            self._reply()
        if piece is _END:
            raise StopIteration
        return piece

    def close(self) -> None:
        """Close the body; see PEP 3333."""
        close = getattr(self._body, "close", None)
        if close is not None:
            with self._exchange.step("close"):
                close()

    def _reply(self) -> None:
        if not self._has_replied:
            self._has_replied = True
            self._exchange.reply(stamp())


def _made_piece_by_piece(body: Iterable[bytes], environ: WSGIEnvironment) -> bool:
    # Pass a file unchanged: servers recognize the type `wsgi.file_wrapper`, and send it faster.
    wrapper = environ.get("wsgi.file_wrapper")
    is_file = isinstance(wrapper, type) and isinstance(body, wrapper)
    return not isinstance(body, Sized) and not is_file


def _header(environ: WSGIEnvironment, name: str) -> str:
    return str(environ.get("HTTP_" + name.upper().replace("-", "_"), ""))
