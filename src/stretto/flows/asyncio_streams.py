"""Flows of asyncio streams that carry messages: lines, or whatever has a length.

    stream = TracedStream(reader, writer, category="chat", is_server=False)
    await stream.write(b"hello")
    line = await stream.read(stream.reader.readline())

Both ends make theirs before the first message, as soon as they are connected, and each `write` and
`read` is a whole message: its header, too.

A `read` that fails may have taken something off the stream: `readline()` a line that is too long,
or a part of it. How many messages that was nobody knows, so from then on those that are read have
no arrows (`not synchronised`, see `stretto.flows.messages`). Only a read of asyncio's own that is
cancelled has taken nothing: so put a timeout around ours, `wait_for(stream.read(...), 5)`.
"""

from __future__ import annotations

from asyncio import CancelledError, StreamReader
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto.flows.messages import MessageFlows

if TYPE_CHECKING:
    from asyncio import StreamWriter
    from collections.abc import Awaitable, Iterator

_ALL_OR_NOTHING = frozenset(
    function.__code__
    for function in (StreamReader.readexactly, StreamReader.readline, StreamReader.readuntil)
)
"""Reads that take a message off the stream once it is there as a whole."""


class TracedStream:
    """One end of a connection.

    Args:
        reader: Its reading half.
        writer: Its writing half.
        category: Under which messages are traced.
        is_server: Which end it is; the other end says the opposite.
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
        """Wait for one message. It counts as handled at once: see `handling`.

        Args:
            reading: Gives the message, or its body; b"" at the end of the stream is none.
            name: What it is called.

        Raises:
            Exception: Whatever `reading` raises.
        """
        code = getattr(reading, "cr_code", None)
        try:
            data = await reading
        except BaseException as error:
            if code not in _ALL_OR_NOTHING or not isinstance(error, CancelledError):
                self._flows.lost()
            raise
        # `readexactly` never gives the end; it raises.
        if data or code is StreamReader.readexactly.__code__ or not self.reader.at_eof():
            with self._flows.handling(name or self._name, size=len(data)):
                pass
        return data

    @contextmanager
    def handling(self, name: str = "", *, size: int | None = None) -> Iterator[None]:
        """Around the work about one message that was read from `reader` directly."""
        with self._flows.handling(name or self._name, size=size):
            yield

    def lost(self) -> None:
        """Say that it isn't known how many messages were read from `reader` directly."""
        self._flows.lost()
