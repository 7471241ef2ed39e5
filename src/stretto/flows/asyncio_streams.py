"""Flows of asyncio streams that carry messages: lines, or messages with a length.

    stream = TracedStream(reader, writer, category="chat", is_server=False)
    await stream.write(b"hello")
    line = await stream.read(stream.reader.readline())

Both ends make their object as soon as they are connected, before the first message. Each `write`
and `read` has to be a whole message, including its header.

A `read` that fails may have consumed a part of the stream: `readline()` consumes a line that is too
long, or a part of it. The number of consumed messages is then unknown, so all later reads have no
arrows (`not synchronised`, see `stretto.flows.messages`).

A read that is cancelled consumes nothing if it uses asyncio's own functions. So a timeout is safe
around `TracedStream.read`: `wait_for(stream.read(...), 5)`.
"""

from __future__ import annotations

from asyncio import CancelledError, StreamReader
from contextlib import contextmanager

from stretto.flows.messages import MessageFlows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamWriter
    from collections.abc import Awaitable, Iterator

_ALL_OR_NOTHING = frozenset(
    function.__code__
    for function in (StreamReader.readexactly, StreamReader.readline, StreamReader.readuntil)
)
"""Reads that consume a message only when it is complete."""


class TracedStream:
    """One end of a connection.

    Args:
        reader: The end's reader.
        writer: The end's writer.
        category: The category of the messages.
        is_server: Which end it is; the other end must have the opposite value.
        name: The default name of messages.
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
        """Send one message, and wait until the writer accepts more."""
        with self._flows.sending(name or self._name, size=len(data)):
            self.writer.write(data)
        await self.writer.drain()

    async def read(self, reading: Awaitable[bytes], name: str = "") -> bytes:
        """Wait for one message. Its handling is not timed: see `handling`.

        Args:
            reading: Returns the message, or its body; b"" at the end of the stream isn't a message.
            name: The name of the message.

        Raises:
            Exception: Any exception of `reading`.
        """
        code = getattr(reading, "cr_code", None)
        try:
            data = await reading
        except BaseException as error:
            if code not in _ALL_OR_NOTHING or not isinstance(error, CancelledError):
                self._flows.lost()
            raise
        # b"" is the end of the stream, except from `readexactly`: there b"" is an empty message.
        if data or code is StreamReader.readexactly.__code__ or not self.reader.at_eof():
            with self._flows.handling(name or self._name, size=len(data)):
                pass
        return data

    @contextmanager
    def handling(self, name: str = "", *, size: int | None = None) -> Iterator[None]:
        """Record a `with` block as the handling of one message.

        Use it for a message that was read directly from `reader`, not by this object.
        """
        with self._flows.handling(name or self._name, size=size):
            yield

    def lost(self) -> None:
        """Report that an unknown number of messages was read from `reader` directly."""
        self._flows.lost()
