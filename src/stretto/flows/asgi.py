"""Flows of ASGI applications: a middleware.

    app = FlowMiddleware(app)

Each HTTP request becomes a slice, joined to the client's slice by the request's `traceparent` or
`x-stretto-flow` header (see `stretto.flows.exchange`).
"""

from __future__ import annotations

from stretto.base import rpc_hooks
from stretto.flows.exchange import key_of, stamp
from stretto.flows.own_frames import without_own_frames
from stretto.flows.routes import server_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping
    from typing import Any

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]


class FlowMiddleware:
    """Traces the requests of an ASGI application.

    Args:
        app: The application.
        category: The category of the slices.
        paths: Whether slices are named by method and path; else by the method alone, or by the
            route (see `stretto.flows.routes`).
    """

    def __init__(self, app: App, *, category: str = "http", paths: bool = True) -> None:
        self._switch = rpc_hooks.switch(category)
        self._app = app
        self._category = category
        self._paths = paths

    @without_own_frames
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection; protocols other than HTTP are passed to the application untraced."""
        if not self._switch.enabled or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        key = key_of(_texts(scope["headers"]))
        exchange = server_end(
            self._category, scope["method"], scope["path"] if self._paths else None, key
        )

        async def send_traced(message: MutableMapping[str, Any]) -> None:
            before = stamp()
            await send(message)
            if message["type"] == "http.response.start":
                exchange.reply(before)

        with exchange:
            await self._app(scope, receive, send_traced)


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
