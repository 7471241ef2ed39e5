"""The two ends of a FIDL channel, for bench/flows.py, which measures traced and untraced calls.

`FidlAsync` has both ends in one thread, so that the noise of wakeups doesn't hide the cost of
tracing. `Fidl` has a server in a thread, and a blocking client. The object `bench` has the classes
of the protocol. bench/flows.py imports this module; `_flow_ends` and `_rounds` are in the folder of
bench/flows.py.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from _flow_ends import BODY, CATEGORY, states
from _rounds import timed

from stretto_fidl.bindings import channel, load
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import AsyncClient, AsyncServer, Client, Server

FIDL = f"""
library bench;

protocol Bench {{
    @trace("{CATEGORY}")
    strict Echo(struct {{ data vector<uint8>:64; }}) -> (struct {{ data vector<uint8>:64; }});
    strict Plain(struct {{ data vector<uint8>:64; }}) -> (struct {{ data vector<uint8>:64; }});
}};
"""
bench: Any = load(compile_sources({"bench.fidl": FIDL}))


class _Handler:
    def Echo(self, request: Any) -> Any:  # noqa: N802  # FIDL's name
        return bench.BenchEchoResponse(data=request.data)

    def Plain(self, request: Any) -> Any:  # noqa: N802  # FIDL's name
        return bench.BenchPlainResponse(data=request.data)


class Fidl:
    """A blocking client and a server in a thread, over a socket pair."""

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
    """An asyncio client and server in one loop, over a socket pair."""

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
