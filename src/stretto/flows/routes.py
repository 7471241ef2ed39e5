"""Names the slice of a server's request by the route that the framework finds.

    middleware   [ GET /users/{name} ........................ ]
    framework         ^ finds the route        ^ reply

The middleware gets the request before the framework knows its route, and an event can't be renamed.
So the BEGIN of the slice is written when the route is found, with the time and on the track at
which the middleware was entered. If no route is found, as for a wrong path, the BEGIN is written
with the reply, and the slice is named by the method alone.

An application may be mounted in another one, whose routes have the beginning of the path. It is
part of the name: `GET /shop/users/{name}`. If a mounted application knows no routes, such as one
that serves files, the name ends in the outer application's own template, `GET /static/{path:path}`.

The request is in a context variable, which threads and tasks of frameworks inherit.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar

import stretto
from stretto.client.track_event.task_track import current_task_track
from stretto.flows.exchange import Exchange, no_flow, traced_method
from stretto.flows.tracer import incoming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import Token
    from types import TracebackType
    from typing import Any, Self


class RoutedExchange(Exchange):
    """The server's end of a request, whose slice may get the name of a route.

    Args:
        category: The category of the slices.
        method: The HTTP method: the name of a request without a route.
        key: The result of `key_of`; 0: there is no arrow.
    """

    __slots__ = ("_category", "_http_method", "_mounted", "_since", "_tokens", "_track")

    are_awaited = False
    """Whether a framework is known that calls `found`. If not, slices begin at once."""

    def __init__(self, *, category: str, method: str, key: int) -> None:
        super().__init__(category=category, service="http", method=method, key=key, is_server=True)
        self._category = category
        self._http_method = method
        self._mounted = ""
        self._since = 0
        self._track: Any = None
        self._tokens: list[tuple[ContextVar[Any], Token[Any]]] = []

    def __enter__(self) -> Self:
        if self._method is None:
            return self
        self._since = stretto.now()
        self._track = current_task_track() or stretto.thread_track()
        self._tokens += [(incoming, incoming.set(self._key)), (_handled, _handled.set(self))]
        if not self.are_awaited:
            self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._begin()
        self._since = 0
        super().__exit__(kind, error, traceback)
        while self._tokens:
            variable, token = self._tokens.pop()
            with suppress(ValueError):  # Another context ends a task that was given up.
                variable.reset(token)

    def reply(self, stamp: int = 0, size: int = 0) -> None:
        """Record that the reply is being sent; see `Exchange.reply`."""
        self._begin()
        super().reply(stamp, size)

    def found(self, route: str) -> None:
        """Name the slice by a route, unless it has begun; see the function `found`."""
        if self._since and self._slice is None:
            self._mounted = ""
            self._name(route)
            self._begin()

    def reached(self, mounted: str) -> None:
        """Tell that a mounted application handles the request; see the function `below`."""
        self._mounted = mounted

    def _name(self, route: str) -> None:
        name = f"{self._http_method} {route}"
        self._method = traced_method(self._category, "http", name)

    def _begin(self) -> None:
        if self._method is not None and self._since and self._slice is None:
            if self._mounted:
                self._name(f"{self._mounted}{REST}")
            method = self._method
            self._slice = method.received_request.slice(
                flow=self._key or no_flow(), track=self._track, timestamp=self._since
            )
            self._slice.__enter__()


_handled: ContextVar[RoutedExchange | None] = ContextVar("stretto.flows.routes", default=None)
"""The request that is handled in this context."""
mounted: ContextVar[str] = ContextVar("stretto.flows.mounted", default="")
"""The path of the mounted application that handles it."""

REST = "/{path:path}"
"""The template of the path within a mounted application, as Starlette writes it."""


def server_end(category: str, method: str, path: str | None, key: int) -> Exchange:
    """Return the server's end of a request.

    Args:
        category: The category of the slices.
        method: The HTTP method.
        path: The path, if the slice is to be named by it; None: by the route.
        key: The result of `key_of`.
    """
    if path is None:
        return RoutedExchange(category=category, method=method, key=key)
    return Exchange(
        category=category, service="http", method=f"{method} {path}", key=key, is_server=True
    )


def replied(stamp: int) -> None:
    """Record that the reply of the request that is handled was sent; see `Exchange.reply`."""
    request = _handled.get()
    if request is not None:
        request.reply(stamp)


@contextmanager
def below(path: str) -> Iterator[None]:
    """Add the path of a mounted application to the routes that it finds in the block.

    Args:
        path: The template of the path, like `/shops/{shop}`.
    """
    token = mounted.set(mounted.get() + path)
    try:
        if (request := _handled.get()) is not None:
            request.reached(mounted.get())
        yield
    finally:
        mounted.reset(token)


def found(route: str) -> bool:
    """Name the request that is handled by its route.

    Args:
        route: The template of the route, like `/users/{name}`, within the mounted application.

    Returns:
        Whether a middleware traces the request; if not, it has no slice.
    """
    request = _handled.get()
    if request is not None:
        request.found(mounted.get() + route)
    return request is not None
