"""Flows of asyncio streams that carry messages: lines, or whatever has a length.

    stream = TracedStream(reader, writer, category="chat", is_server=False)
    await stream.write(b"hello")
    line = await stream.read(stream.reader.readline())

Both ends make theirs before the first message, and each `write` and `read` is a whole message.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto.flows.messages import MessageFlows

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Awaitable, Iterator


class TracedStream:
    """One end of a connection.

    Args:
        reader: Its reading half.
        writer: Its writing half.
        category: Under which messages are traced.
        is_server: Which end it is.
        name: What messages are called that have no name of their own.
    """

    def __init__(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        *,
        category: str,
        is_server: bool,
        name: str = "message",
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._name = name
        end = writer.get_extra_info("socket")
        self._flows = MessageFlows(end, category=category, is_server=is_server)

    async def write(self, data: bytes, name: str = "") -> None:
        """Send one message, and wait until the stream takes more."""
        with self._flows.sending(name or self._name, size=len(data)):
            self.writer.write(data)
        await self.writer.drain()

    async def read(self, reading: Awaitable[bytes], name: str = "") -> bytes:
        """Wait for one message; b"" at the end. It counts as handled at once: see `handling`."""
        data = await reading
        if data:
            with self._flows.handling(name or self._name, size=len(data)):
                pass
        return data

    @contextmanager
    def handling(self, name: str = "", *, size: int = 0) -> Iterator[None]:
        """Around the work about one message that was read from `reader` directly."""
        with self._flows.handling(name or self._name, size=size):
            yield
