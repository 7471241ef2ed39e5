"""`stretto record --flows` joins requests of HTTP and gRPC without a change of the program."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import web_processes
from tests.support.recorded import check_trace, record

OPTIONS = ("--flows", "--no-functions", "--no-logs")
REQUESTS = {"urllib": 1, "requests": 1, "httpx": 3, "aiohttp": 1}
"""The number of requests that each client library sends to a server."""
ROUTES = {
    "aiohttp": "GET /users/{name}",
    "django": "GET /users/<str:name>",
    "flask": "GET /users/<name>",
    "starlette": "GET /users/{name}",
}
"""The name of a request's slice, by its server; others know no routes."""
AIOHTTP = """
import asyncio
from aiohttp import ClientSession, web

async def item(request):
    return web.Response(text="ok")

async def fails(request):
    raise LookupError

async def talk(request):
    answer = web.WebSocketResponse()
    await answer.prepare(request)
    return answer

async def main():
    app = web.Application()
    for path, handler in (("/items/{item}", item), ("/fails", fails), ("/talk", talk)):
        app.router.add_get(path, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    url = f"http://{host}:{port}"
    async with ClientSession() as session:
        statuses = []
        for request in ("GET /items/secret", "GET /secret", "POST /items/secret", "GET /fails"):
            method, path = request.split()
            async with session.request(method, url + path) as response:
                statuses.append(response.status)
        async with session.ws_connect(url + "/talk") as socket:
            statuses.append(socket._response.status)
    await runner.cleanup()
    print(*statuses)

asyncio.run(main())
"""
GRPC = """
import sys
from concurrent.futures import ThreadPoolExecutor
import grpc

class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

if len(sys.argv) > 1:
    server = grpc.server(ThreadPoolExecutor(1), [Echo()])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(None).wait()
else:
    import subprocess
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, __file__, "serve"], **pipes) as server:
        with grpc.insecure_channel(f"127.0.0.1:{int(server.stdout.readline())}") as channel:
            assert channel.unary_unary("/shop.Cart/Add")(b"x", wait_for_ready=True) == b"x"
"""


def arrows(loaded: Any) -> list[tuple[str, str]]:
    """Return the names of the slices that a flow joins, if they are in different processes."""
    sql = """
        with owned as (
          select s.id, s.name, coalesce(t.upid, p.upid) as upid from slice s
          left join thread_track tt on tt.id = s.track_id left join thread t using (utid)
          left join process_track p on p.id = s.track_id)
        select a.name, b.name from flow
        join owned a on a.id = flow.slice_out join owned b on b.id = flow.slice_in
        where a.upid != b.upid order by 1, 2"""
    return [(str(one), str(other)) for one, other in loaded.query(sql)]


def test_http_requests_are_joined_and_named_without_their_paths(
    tmp_path: Path, oracle: Any
) -> None:
    run = record(tmp_path / "trace", *OPTIONS, web_processes.__file__)
    assert run.status == 0, run.stderr
    assert "no flows of" not in run.stderr
    loaded = check_trace(oracle, run.trace, complete=False)
    found = arrows(loaded)
    servers = dict(line.split() for line in run.stdout.splitlines())
    assert list(servers) == web_processes.SERVERS
    count = sum(REQUESTS[client] for client in web_processes.CLIENTS)
    for server, port in servers.items():
        call, handled = f"GET 127.0.0.1:{port}", ROUTES.get(server, "GET")
        assert found.count((call, handled)) == count, (server, found)
        assert found.count(("reply", "reply")) == count * len(servers)
    assert web_processes.SECRET.encode() not in run.trace
    assert loaded.query("select name from slice where name glob 'stretto.*'") == []
    # A server may end right after its last reply: the slice of that request is open then.
    slices = "select name, count(*) from slice where dur != 0 and name glob 'GET*' group by name"
    handled = Counter(ROUTES.get(server, "GET") for server in servers)
    calls = {f"GET 127.0.0.1:{port}": count for port in servers.values()}
    assert dict(loaded.query(slices)) == calls | {name: n * count for name, n in handled.items()}


def test_aiohttp_server_has_a_slice_for_each_request_but_none_for_a_websocket(
    tmp_path: Path, oracle: Any
) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp isn't installed")
    script = tmp_path / "shop.py"
    script.write_text(AIOHTTP)
    run = record(tmp_path / "trace", *OPTIONS, str(script))
    assert (run.status, run.stdout) == (0, "200 404 405 500 101\n"), run.stderr
    assert "no flows of" not in run.stderr
    loaded = check_trace(oracle, run.trace, complete=False)
    names = "select name, count(*) from slice where dur > 0 and name glob '[GP]* *' group by name"
    served = {name: count for name, count in loaded.query(names) if "127.0.0.1" not in name}
    assert served == {"GET /items/{item}": 1, "GET /fails": 1}
    plain = "select count(*) from slice where dur > 0 and name in ('GET', 'POST')"
    assert loaded.query(plain) == [(2,)]
    assert b"secret" not in run.trace


def test_grpc_calls_are_joined(tmp_path: Path, oracle: Any) -> None:
    pytest.importorskip("grpc", reason="grpcio isn't installed")
    script = tmp_path / "shop.py"
    script.write_text(GRPC)
    run = record(tmp_path / "trace", *OPTIONS, str(script))
    assert run.status == 0, run.stderr
    assert "no flows of" not in run.stderr
    assert ("Add", "Add") in arrows(check_trace(oracle, run.trace, complete=False))


def test_libraries_are_not_wrapped_without_the_option(tmp_path: Path) -> None:
    program = (
        "import http.client, sys\n"
        "assert not hasattr(http.client.HTTPConnection.getresponse, '__wrapped__')\n"
        "assert 'stretto.flows' not in sys.modules\n"
    )
    assert record(tmp_path / "trace", "--no-functions", "-c", program).status == 0


def test_library_that_cannot_be_wrapped_is_named_in_the_summary(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("Client = None\n")
    run = record(tmp_path / "trace", *OPTIONS, "-c", "import httpx", cwd=tmp_path)
    assert run.status == 0, run.stderr
    assert "no flows of httpx: AttributeError" in run.stderr
