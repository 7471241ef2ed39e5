"""Two processes connected by every wrapped transport of the standard library.

The command is `python wrapped_transports.py FOLDER`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from http.client import HTTPConnection
from typing import Any
from urllib.request import Request, urlopen
from wsgiref.simple_server import WSGIRequestHandler, make_server

from stretto import flows
from stretto.flows.asyncio_streams import TracedStream
from stretto.flows.http_call import http_call
from stretto.flows.http_client import TracedHTTPConnection
from stretto.flows.process_queue import TracedJoinableQueue, TracedQueue
from stretto.flows.queues import TracedSimpleQueue, traced_pipe
from stretto.flows.wsgi import FlowMiddleware

ITEMS = 20
CATEGORY = "test.wrapped"


class Silent(WSGIRequestHandler):
    """A request handler without log output."""

    def log_message(self, *_: object) -> None:
        """Write no log output."""


def web_app(_environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def there(queues: list[Any], ports: Any, path: str) -> None:
    """Run the second process: receive items and serve requests."""
    flows.install()
    for queue in queues:
        for number in range(ITEMS):
            assert (queue.recv() if hasattr(queue, "recv") else queue.get()) == number
    with make_server("127.0.0.1", 0, FlowMiddleware(web_app), handler_class=Silent) as server:
        ports.put(server.server_port)
        for _ in range(2 * ITEMS):
            server.handle_request()
    asyncio.run(take_lines(path, ports))


async def take_lines(path: str, ports: Any) -> None:
    done = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = TracedStream(reader, writer, category=CATEGORY, is_server=True, name="streamed")
        for _ in range(ITEMS):
            assert await stream.read(reader.readline()) == b"line\n"
        writer.close()
        await writer.wait_closed()
        done.set()

    async with await asyncio.start_unix_server(take, path):
        ports.put(0)
        await done.wait()


async def send_lines(path: str) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    stream = TracedStream(reader, writer, category=CATEGORY, is_server=False, name="streamed")
    for _ in range(ITEMS):
        await stream.write(b"line\n")
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


def call_by_urllib(port: int) -> None:
    for _ in range(ITEMS):
        headers: dict[str, str] = {}
        url = f"http://127.0.0.1:{port}/client"
        with http_call("GET", url, headers, add_header=True):
            urlopen(Request(url, headers=headers), timeout=30).close()


def call_by_http_client(port: int) -> None:
    for _ in range(ITEMS):
        connection: HTTPConnection = TracedHTTPConnection("127.0.0.1", port, add_header=True)
        connection.request("GET", "/wsgi")
        assert connection.getresponse().read() == b"ok"
        connection.close()


def main(folder: str) -> None:
    context: Any = multiprocessing.get_context("spawn")
    queues: list[Any] = [
        TracedQueue(category=CATEGORY, name="queued", context=context),
        TracedJoinableQueue(category=CATEGORY, name="joinable", context=context),
        TracedSimpleQueue(category=CATEGORY, name="simple", context=context),
    ]
    near, far = traced_pipe(category=CATEGORY, name="piped", context=context)
    ports = context.Queue()
    path = f"{folder}/sock"
    child = context.Process(target=there, args=([*queues, far], ports, path))
    child.start()
    far.close()
    for queue in queues:
        for number in range(ITEMS):
            queue.put(number)
    for number in range(ITEMS):
        near.send(number)
    port = ports.get(timeout=60)
    call_by_http_client(port)
    call_by_urllib(port)
    assert ports.get(timeout=60) == 0
    asyncio.run(send_lines(path))
    child.join()
    raise SystemExit(child.exitcode or bool(flows.stats()))


if __name__ == "__main__":
    flows.install()
    main(sys.argv[1])
