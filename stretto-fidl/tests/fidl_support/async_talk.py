"""A client and a server of the test protocol Talk in one asyncio loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fidl_support.talk import Talker, talk
from stretto_fidl.bindings import ChannelEnd
from stretto_fidl.transport import AsyncClient, AsyncServer


class AsyncTalker(Talker):
    """Handles the protocol Talk with coroutines.

    `Later` waits for the asyncio event `gate` before it replies.
    """

    def __init__(self, names: Any = talk) -> None:
        super().__init__(names)
        self.gate = asyncio.Event()
        self.running = 0
        self.most = 0
        self.cancelled = 0

    async def Echo(self, request: Any) -> Any:  # noqa: N802
        return self.names.TalkEchoResponse(number=request.number)

    async def Later(self, request: Any) -> Any:  # noqa: N802
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return self.names.TalkLaterResponse(number=request.number)


@asynccontextmanager
async def conversation(
    handler: Any = None, *, kind: int = socket.SOCK_SEQPACKET, **options: Any
) -> AsyncIterator[tuple[Any, Any, asyncio.Task[None]]]:
    """Yield a connected client, its server and the server's task."""
    near, far = (
        ChannelEnd(end.detach(), used=False) for end in socket.socketpair(socket.AF_UNIX, kind)
    )
    handler = handler or AsyncTalker()
    server = AsyncServer(handler.names.Talk, far, handler, **options)
    task = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(60), AsyncClient(handler.names.Talk, near) as client:
            yield client, server, task
    finally:
        server.close()
        await asyncio.gather(task, return_exceptions=True)
