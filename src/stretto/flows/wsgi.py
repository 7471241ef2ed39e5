"""Flows of WSGI applications: a middleware.

    app = FlowMiddleware(app)

Each request is a slice that lasts until the application has returned its body, joined to its
client's slice as those of `stretto.flows.asgi` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base import rpc_hooks
from stretto.flows.exchange import FLOW_HEADER, TRACEPARENT, Exchange, key_of, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


class FlowMiddleware:
    """Args:
    app: The application.
    category: Under which requests are traced.
    """

    def __init__(self, app: WSGIApplication, *, category: str = "http") -> None:
        self._switch = rpc_hooks.switch(category)
        self._app = app
        self._category = category

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Handle a request."""
        if not self._switch.enabled:
            return self._app(environ, start_response)
        exchange = Exchange(
            category=self._category,
            service="http",
            method=f"{environ.get('REQUEST_METHOD', '')} {environ.get('PATH_INFO', '')}",
            key=key_of({name: _header(environ, name) for name in (TRACEPARENT, FLOW_HEADER)}),
            is_server=True,
        )
        with exchange:
            body = self._app(environ, start_response)
            # The server writes the head with the first piece of the body, behind us.
            exchange.reply(stamp())
            return body


def _header(environ: WSGIEnvironment, name: str) -> str:
    return str(environ.get("HTTP_" + name.upper().replace("-", "_"), ""))
