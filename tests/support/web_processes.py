"""HTTP servers in processes of their own, and a request by each client library to each server.

`python web_processes.py` starts the servers and makes the requests. `python web_processes.py NAME`
is the server NAME; it prints its port, and ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from importlib.util import find_spec
from types import ModuleType
from typing import Any

SERVERS = [
    name
    for name, module in (
        ("starlette", "starlette"),
        ("flask", "flask"),
        ("django", "django"),
        ("gunicorn", "gunicorn"),
        ("wsgiref", "wsgiref"),
        ("aiohttp", "aiohttp"),
    )
    if find_spec(module)
]
CLIENTS = [name for name in ("urllib", "requests", "httpx", "aiohttp") if find_spec(name)]
SECRET = "secret-7"
HOST = "127.0.0.1"


def plain(_environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def end_with_input() -> None:
    def wait() -> None:
        sys.stdin.read()
        os._exit(0)  # What was recorded until now survives.

    threading.Thread(target=wait, daemon=True).start()


def ready(port: int) -> None:
    print(port, flush=True)


def serve_starlette() -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    async def user(_request: Any) -> PlainTextResponse:
        return PlainTextResponse("ok")

    listener = socket.create_server((HOST, 0))
    ready(listener.getsockname()[1])
    app = Starlette(routes=[Mount("/users", Starlette(routes=[Route("/{name}", user)]))])
    config = uvicorn.Config(app, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


def serve_flask() -> None:
    from flask import Blueprint, Flask
    from werkzeug.serving import make_server

    app = Flask(__name__)
    users = Blueprint("users", __name__, url_prefix="/users")
    users.add_url_rule("/<name>", view_func=lambda name: "ok", endpoint="user")
    app.register_blueprint(users)
    server = make_server(HOST, 0, app)
    ready(server.server_port)
    server.serve_forever()


def serve_django() -> None:
    from wsgiref.simple_server import make_server

    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.urls import include, path

    urls: Any = ModuleType("urls")
    user = path("<str:name>", lambda _request, name: HttpResponse("ok"))
    urls.urlpatterns = [path("users/", include([user]))]
    settings.configure(SECRET_KEY="x", ALLOWED_HOSTS=[HOST], ROOT_URLCONF=urls)
    server = make_server(HOST, 0, get_wsgi_application())
    ready(server.server_port)
    server.serve_forever()


def serve_gunicorn() -> None:
    from gunicorn.app.base import BaseApplication

    class Application(BaseApplication):
        def load_config(self) -> None:
            self.cfg.set("bind", f"{HOST}:0")
            self.cfg.set("when_ready", lambda server: ready(server.LISTENERS[0].getsockname()[1]))

        def load(self) -> Any:
            return plain

    Application().run()


def serve_wsgiref() -> None:
    from wsgiref.simple_server import make_server

    server = make_server(HOST, 0, plain)
    ready(server.server_port)
    server.serve_forever()


def serve_aiohttp() -> None:
    from aiohttp import web

    async def user(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    users = web.Application()
    users.router.add_get("/{name}", user)
    app = web.Application()
    app.add_subapp("/users", users)
    listener = socket.create_server((HOST, 0))
    ready(listener.getsockname()[1])
    web.run_app(app, sock=listener, print=None, handle_signals=False)


def get(client: str, url: str) -> None:
    if client == "urllib":
        with urllib.request.urlopen(url, timeout=60) as response:
            assert response.read() == b"ok"
    elif client == "requests":
        import requests

        assert requests.get(url, timeout=60).text == "ok"
    elif client == "httpx":
        import httpx

        assert httpx.get(url, timeout=60).text == "ok"
        asyncio.run(get_by_tasks(url))
    else:
        asyncio.run(get_by_aiohttp(url))


async def get_by_tasks(url: str) -> None:
    import httpx

    async with httpx.AsyncClient(timeout=60) as client:
        responses = await asyncio.gather(client.get(url), client.get(url))
    assert [response.text for response in responses] == ["ok", "ok"]


async def get_by_aiohttp(url: str) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert await response.text() == "ok"


def main() -> None:
    os.environ["NO_PROXY"] = "*"
    for server in SERVERS:
        with subprocess.Popen(
            [sys.executable, __file__, server],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            for client in CLIENTS:
                get(client, f"http://{HOST}:{port}/users/{SECRET}?token={SECRET}")
            print(server, port, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        end_with_input()
        {
            "starlette": serve_starlette,
            "flask": serve_flask,
            "django": serve_django,
            "gunicorn": serve_gunicorn,
            "wsgiref": serve_wsgiref,
            "aiohttp": serve_aiohttp,
        }[sys.argv[1]]()
    else:
        main()
