"""Flows of HTTP and gRPC without a change of the program: `stretto record --flows`.

    client   urllib, requests, urllib3 (all by http.client), httpx, aiohttp, gRPC
    server   uvicorn (ASGI); gunicorn, werkzeug, wsgiref (WSGI); aiohttp; gRPC
    route    Starlette and FastAPI, Flask, Django, aiohttp

Each library is wrapped when the program has imported it. Requests without a `traceparent` get the
header `x-stretto-flow`.

Paths may hold names, ids and secrets, so no event has a path. A client's slice is named by method
and host, a server's slice by the method and the template of the route, `GET /users/{name}`, or by
the method alone if no framework knows the route (see `stretto.flows.routes`).
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from functools import partial, wraps
from inspect import iscoroutinefunction
from urllib.parse import urlsplit

import stretto
from stretto.base import rpc_hooks
from stretto.flows import routes
from stretto.flows.exchange import FLOW_HEADER, TRACEPARENT, Exchange, key_of, new_flow, stamp
from stretto.flows.own_frames import without_own_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import Any

    Wire = Callable[[Any], object]

CATEGORY = "http"
WSGI_WORKERS = {f"gunicorn.workers.{name}" for name in ("sync", "gthread", "base_async")}
"""Modules of gunicorn's workers for WSGI; others serve ASGI, or something else."""

problems: list[str] = []
"""A line for each library that could not be wrapped."""


def install(when_imported: Callable[[str, Wire], object]) -> None:
    """Wrap the libraries that are imported already; wrap the others after their import.

    Args:
        when_imported: calls a function with a module, now or after its import.
    """
    from stretto import flows

    flows.install()
    for name, wire in LIBRARIES.items():
        when_imported(name, lambda module, wire=wire: _wire(module, wire))  # type: ignore[misc]


def _wire(module: ModuleType, wire: Wire) -> None:
    try:
        wire(module)
    except Exception as error:  # noqa: BLE001  # the import must not fail
        problems.append(f"no flows of {module.__name__}: {type(error).__name__}: {error}")


def _around(owner: Any, name: str, call: Callable[..., Any]) -> None:
    """Replace a function by `call`, which gets the original as its first argument."""
    original = getattr(owner, name)
    setattr(owner, name, wraps(original)(without_own_frames(partial(call, original))))


# --- clients


def _exchange(method: str, host: str | None, port: int | None, key: int) -> Exchange:
    shown = host or ""
    if port not in (None, 80, 443):
        shown = f"{shown}:{port}"
    return Exchange(
        category=CATEGORY,
        service="http",
        method=f"{method} {shown}".rstrip(),
        key=key,
        is_server=False,
    )


def _key_in(headers: Mapping[str, str]) -> int:
    """Return the key in headers, whose names may be in any case; 0 if there is none."""
    return key_of({name: headers[name] for name in (TRACEPARENT, FLOW_HEADER) if name in headers})


@contextmanager
def _call(
    method: str, host: str | None, port: int | None, headers: MutableMapping[str, str]
) -> Iterator[None]:
    """Trace the request that the `with` block sends. May add a header to `headers`."""
    key = _key_in(headers)
    if not key:
        headers[FLOW_HEADER], key = new_flow()
    with _exchange(method, host, port, key) as exchange:
        yield
        exchange.reply()


class _Request:
    """A request that a connection of http.client is sending."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.headers: dict[str, str] = {}
        self.exchange: Exchange | None = None


def _wire_http_client(module: Any) -> None:
    switch = rpc_hooks.switch(CATEGORY)
    requests = "_stretto_request"

    def putrequest(original: Any, self: Any, method: str, *args: Any, **kwargs: Any) -> None:
        setattr(self, requests, _Request(method))
        original(self, method, *args, **kwargs)

    def putheader(original: Any, self: Any, header: Any, *values: Any) -> None:
        original(self, header, *values)
        name = (header.decode("latin-1") if isinstance(header, bytes) else header).lower()
        if name in (TRACEPARENT, FLOW_HEADER) and values and hasattr(self, requests):
            value = values[0]
            text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
            getattr(self, requests).headers[name] = text

    def endheaders(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        request: _Request | None = getattr(self, requests, None)
        if request is None or not switch.enabled:
            original(self, *args, **kwargs)
            return
        key = key_of(request.headers)
        if not key:
            text, key = new_flow()
            self.putheader(FLOW_HEADER, text)
        host = getattr(self, "_tunnel_host", None) or self.host
        request.exchange = _exchange(request.method, host, self.port, key)
        with request.exchange:
            original(self, *args, **kwargs)

    def getresponse(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        request: _Request | None = getattr(self, requests, None)
        if request is None or request.exchange is None:
            return original(self, *args, **kwargs)
        with request.exchange.step("getresponse"):
            response = original(self, *args, **kwargs)
        request.exchange.reply()
        return response

    for function in (putrequest, putheader, endheaders, getresponse):
        _around(module.HTTPConnection, function.__name__, function)


def _wire_httpx(module: Any) -> None:
    switch = rpc_hooks.switch(CATEGORY)

    def send(original: Any, self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not switch.enabled:
            return original(self, request, *args, **kwargs)
        with _call(request.method, request.url.host, request.url.port, request.headers):
            return original(self, request, *args, **kwargs)

    async def send_async(original: Any, self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not switch.enabled:
            return await original(self, request, *args, **kwargs)
        with _call(request.method, request.url.host, request.url.port, request.headers):
            return await original(self, request, *args, **kwargs)

    _around(module.Client, "send", send)
    _around(module.AsyncClient, "send", send_async)


def _wire_aiohttp(module: Any) -> None:
    switch = rpc_hooks.switch(CATEGORY)

    async def request(original: Any, self: Any, method: str, url: Any, **kwargs: Any) -> Any:
        if not switch.enabled:
            return await original(self, method, url, **kwargs)
        # A new mapping: the program may use its own for other requests.
        headers = kwargs["headers"] = module.CIMultiDict(kwargs.get("headers") or ())
        parts = urlsplit(str(url))
        with _call(method, parts.hostname, parts.port, headers):
            return await original(self, method, url, **kwargs)

    _around(module.ClientSession, "_request", request)


# --- servers


def _wire_uvicorn(module: Any) -> None:
    from stretto.flows.asgi import FlowMiddleware

    def load(original: Any, self: Any) -> None:
        original(self)
        self.loaded_app = FlowMiddleware(self.loaded_app, paths=False)

    _around(module.Config, "load", load)


def _wsgi(app: Any) -> Any:
    from stretto.flows.wsgi import FlowMiddleware

    return app if isinstance(app, FlowMiddleware) else FlowMiddleware(app, paths=False)


def _wire_gunicorn(module: Any) -> None:
    def load_wsgi(original: Any, self: Any) -> None:
        original(self)
        if any(kind.__module__ in WSGI_WORKERS for kind in type(self).__mro__):
            self.wsgi = _wsgi(self.wsgi)

    _around(module.Worker, "load_wsgi", load_wsgi)


def _wire_wsgiref(module: Any) -> None:
    def set_app(original: Any, self: Any, app: Any) -> None:
        original(self, _wsgi(app) if app is not None else None)

    _around(module.WSGIServer, "set_app", set_app)


def _wire_werkzeug(module: Any) -> None:
    def init(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.app = _wsgi(self.app)

    _around(module.BaseWSGIServer, "__init__", init)


def _wire_aiohttp_server(module: Any) -> None:
    """Wrap the handling of requests, and the sending of the head of their responses.

    A WebSocket is not a request: its handler runs as long as the connection.
    """
    switch = rpc_hooks.switch(CATEGORY)

    async def handle(original: Any, self: Any, request: Any, *args: Any) -> Any:
        headers = request.headers
        if not switch.enabled or headers.get("Upgrade", "").lower() == "websocket":
            return await original(self, request, *args)
        with routes.server_end(CATEGORY, request.method, None, _key_in(headers)):
            return await original(self, request, *args)

    async def start(original: Any, self: Any, request: Any) -> Any:
        before = stamp()
        writer = await original(self, request)
        routes.replied(before)
        return writer

    _around(module.RequestHandler, "_handle_request", handle)
    _around(module.StreamResponse, "_start", start)


# --- routes


def _wire_aiohttp_routes(module: Any) -> None:
    _await_routes()

    async def resolve(original: Any, self: Any, request: Any) -> Any:
        match = await original(self, request)
        # A wrong path or method has a route without a resource.
        if (resource := match.route.resource) is not None:
            routes.found(resource.canonical)
        return match

    _around(module.UrlDispatcher, "resolve", resolve)


def _wire_starlette(module: Any) -> None:
    category = _await_routes()

    async def handle(original: Any, self: Any, scope: Any, *args: Any) -> None:
        with _in_route(category, scope.get("method", ""), self.path):
            await original(self, scope, *args)

    async def mount(original: Any, self: Any, *args: Any) -> None:
        with routes.below(self.path):
            await original(self, *args)

    _around(module.Route, "handle", handle)
    _around(module.Mount, "handle", mount)


def _wire_django(module: Any) -> None:
    category = _await_routes()

    def in_route(name: str, view: Any) -> Any:
        @wraps(view)
        @without_own_frames
        def run(*args: Any, **kwargs: Any) -> Any:
            with category.slice(name):
                return view(*args, **kwargs)

        @wraps(view)
        @without_own_frames
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            with category.slice(name):
                return await view(*args, **kwargs)

        return run_async if iscoroutinefunction(view) else run

    def resolve_request(original: Any, self: Any, request: Any) -> Any:
        match = original(self, request)
        view, args, kwargs = match
        route = f"/{match.route}"
        if routes.found(route) or not category.enabled:
            return match
        return in_route(f"{request.method} {route}", view), args, kwargs

    _around(module.BaseHandler, "resolve_request", resolve_request)


def _wire_flask(module: Any) -> None:
    category = _await_routes()

    def dispatch_request(original: Any, *args: Any) -> Any:
        request = sys.modules["flask"].request
        if (rule := request.url_rule) is None:
            return original(*args)
        with _in_route(category, request.method, rule.rule):
            return original(*args)

    _around(module.Flask, "dispatch_request", dispatch_request)


def _await_routes() -> stretto.Category:
    routes.RoutedExchange.are_awaited = True
    return stretto.Category(CATEGORY)


def _in_route(
    category: stretto.Category, method: str, route: str
) -> AbstractContextManager[object]:
    """Name the request's slice by the route, or return a slice if its server isn't wrapped."""
    if routes.found(route):
        return nullcontext()
    return category.slice(f"{method} {routes.mounted.get()}{route}")


# --- gRPC


def _wire_grpc(module: Any) -> None:
    from stretto.flows import grpcio, grpcio_aio

    client = grpcio.FlowClientInterceptor(add_header=True)

    def channel(original: Any, *args: Any, **kwargs: Any) -> Any:
        return module.intercept_channel(original(*args, **kwargs), client)

    def intercepted(make: Callable[[], list[Any]], position: int) -> Callable[..., Any]:
        """Return a wrapper that calls a function with more interceptors than the caller passes."""

        def call(original: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > position:
                given = [*make(), *(args[position] or ())]
                args = (*args[:position], given, *args[position + 1 :])
            else:
                kwargs["interceptors"] = [*make(), *(kwargs.get("interceptors") or ())]
            return original(*args, **kwargs)

        return call

    def clients() -> list[Any]:
        return grpcio_aio.client_interceptors(add_header=True)

    for name, position in (("insecure_channel", 3), ("secure_channel", 4)):
        _around(module, name, channel)
        _around(module.aio, name, intercepted(clients, position))
    _around(module, "server", intercepted(lambda: [grpcio.FlowServerInterceptor()], 2))
    _around(module.aio, "server", intercepted(lambda: [grpcio_aio.FlowServerInterceptor()], 2))


LIBRARIES: dict[str, Wire] = {
    "http.client": _wire_http_client,
    "httpx": _wire_httpx,
    "aiohttp.client": _wire_aiohttp,
    "aiohttp.web_protocol": _wire_aiohttp_server,
    "aiohttp.web_urldispatcher": _wire_aiohttp_routes,
    "uvicorn.config": _wire_uvicorn,
    "gunicorn.workers.base": _wire_gunicorn,
    "wsgiref.simple_server": _wire_wsgiref,
    "werkzeug.serving": _wire_werkzeug,
    "starlette.routing": _wire_starlette,
    "django.core.handlers.base": _wire_django,
    "flask.app": _wire_flask,
    "grpc": _wire_grpc,
}
"""What wraps a library, by the module that is waited for."""
