"""Both ends of our own RPC, for bench/flows.py: what a call costs, untraced and traced.

`Ipc` and `FidlAsync` go through both machines in one thread, so that what is added isn't lost in
the noise of wakeups; `Fidl` has a server in a thread, and a client that blocks.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

from _rounds import State, timed

from stretto import flows
from stretto.fidl.bindings import channel, load
from stretto.fidl.compiler import compile_sources
from stretto.fidl.transport import AsyncClient, AsyncServer, Client, Server
from stretto.ipc.client import Client as IpcClient
from stretto.ipc.host import HostConnection, HostedService
from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner

CATEGORY = "bench.flows"
BODY = b"x" * 32

SERVICE = ServiceDescriptor("Bench", [Method("Echo", Raw, Raw)], {"Echo": CATEGORY})

FIDL = f"""
library bench;

protocol Bench {{
    @trace("{CATEGORY}")
    strict Echo(struct {{ data vector<uint8>:64; }}) -> (struct {{ data vector<uint8>:64; }});
    strict Plain(struct {{ data vector<uint8>:64; }}) -> (struct {{ data vector<uint8>:64; }});
}};
"""
bench: Any = load(compile_sources({"bench.fidl": FIDL}))


def untraced() -> None:
    """No hooks are there."""
    flows.uninstall()


def off() -> None:
    """Hooks are there, and the category isn't recorded."""
    flows.install()
    flows.disable(CATEGORY)


def on() -> None:
    """Calls are recorded, if a session runs."""
    flows.install()
    flows.enable(CATEGORY)


def states(measure: Any) -> dict[str, State]:
    """Of a thing whose calls have the category."""
    return {
        "untraced": State(measure, untraced),
        "off": State(measure, off),
        "on": State(measure, on),
    }


class Ipc:
    """A client and a host in one thread, over nothing but a list of frames."""

    def __init__(self) -> None:
        self._runner = FakeTaskRunner()
        self._ends = socket.socketpair()
        pair = ConnectionPair(self._runner)
        client = IpcClient(pair.client_outbox, self._ends[0])
        handlers = {"Echo": lambda request, deferred: deferred.resolve(request)}
        host = HostConnection(
            [HostedService(SERVICE, handlers)],
            pair.host_outbox,
            lambda _data: None,
            end=self._ends[1],
        )
        pair.connect(client, host)
        self._outboxes = (pair.client_outbox, pair.host_outbox)
        bound: list[Any] = []
        client.bind(SERVICE, bound.append)
        self._runner.run_until_idle()
        self._proxy = bound[0]
        self.states = states(timed(self._call))

    def _call(self) -> None:
        self._proxy.invoke("Echo", Raw(BODY), lambda _reply, _more: None)
        self._runner.run_until_idle()
        for outbox in self._outboxes:
            outbox.sent.clear()

    def close(self) -> None:
        for end in self._ends:
            end.close()


class _Handler:
    def Echo(self, request: Any) -> Any:  # noqa: N802  # FIDL's name
        return bench.BenchEchoResponse(data=request.data)

    def Plain(self, request: Any) -> Any:  # noqa: N802  # FIDL's name
        return bench.BenchPlainResponse(data=request.data)


class Fidl:
    """A client that blocks, and a server in a thread, over a socket pair."""

    def __init__(self) -> None:
        near, far = channel()
        server = Server(bench.Bench, far, _Handler())
        self._thread = threading.Thread(target=server.serve)
        self._thread.start()
        self._client = Client(bench.Bench, near)
        data = list(BODY)
        self.states = states(timed(lambda: self._client.Echo(data=data)))

    def close(self) -> None:
        self._client.close()
        self._thread.join()


class FidlAsync:
    """A client and a server for asyncio, in one loop, over a socket pair."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._open())
        self.states = states(lambda count: self._loop.run_until_complete(self._calls(count)))

    async def _open(self) -> None:
        near, far = channel()
        self._serving = asyncio.ensure_future(AsyncServer(bench.Bench, far, _Handler()).serve())
        self._client = AsyncClient(bench.Bench, near)

    async def _calls(self, count: int) -> list[int]:
        clock = time.perf_counter_ns
        data = list(BODY)
        figures = []
        for _ in range(count):
            begin = clock()
            await self._client.Echo(data=data)
            figures.append(clock() - begin)
        return figures

    async def _close(self) -> None:
        self._client.close()
        await self._serving

    def close(self) -> None:
        self._loop.run_until_complete(self._close())
        self._loop.close()
