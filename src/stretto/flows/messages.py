"""Flows of any stream whose both ends know where messages begin and end; no byte is added.

    flow = MessageFlows(writer.get_extra_info("socket"), category="chat", is_server=False)

    with flow.sending("line"):                    line = await reader.readline()
        writer.write(line)                        with flow.handling("line"):
    await writer.drain()                              ...

The n-th message that one end sends is the n-th that the other one receives: so both ends make
the object before the first message, and use it for every message, empty ones too. `sending` holds
a lock while its block writes: the order of counting is the order on the wire. One thread, or one
task, reads.

Where the count isn't known any more no arrow is drawn, and `stretto.flows.stats()` counts `not
synchronised`, for the rest of the connection:

- after an exception in the block of `sending`: perhaps the message was written, perhaps not. So
  encode before it, and wait for the stream to drain behind it;
- if two tasks are in such blocks at once: who has written first?
- after `lost`, which whoever reads says if a message went by, or may have, without `handling`.

Nobody can see that both ends say the same of `is_server`: there are no arrows then.
"""

from __future__ import annotations

from _thread import RLock
from contextlib import contextmanager, nullcontext

from stretto.base import rpc_hooks
from stretto.base.errors import ConfigError
from stretto.base.rpc_hooks import ONE_WAY, RpcChannel, RpcMethod, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.base.rpc_hooks import End

_LOST = 0
"""Instead of the number of the next message."""


class MessageFlows:
    """One end of a stream.

    Args:
        end: The socket, or whatever has its `fileno()`; None: there is none.
        category: Under which messages are traced.
        is_server: Which end it is; the other end says the opposite.
        service: What the messages' methods belong to; the argument `service`.
        key: Names the stream at both ends, if the kernel shall not be asked
            (`stretto.flows.channel_key.nonce`).

    Raises:
        ConfigError: `end` has no `fileno()`.
    """

    def __init__(
        self, end: End | None, *, category: str, is_server: bool, service: str = "", key: int = 0
    ) -> None:
        if end is not None and not hasattr(end, "fileno"):
            raise ConfigError(f"{end!r} is no socket: give one, or None and a key")
        switch(category)
        self._channel = RpcChannel(end, is_server=is_server, numbered=True, key=key)
        self._category = category
        self._service = service
        self._lock = RLock()
        self._sends = False
        # Numbers of both directions, never the same: odd ones go to the server.
        self._sent = 2 if is_server else 1
        self._received = 1 if is_server else 2

    @contextmanager
    def sending(self, name: str, *, size: int | None = None) -> Iterator[None]:
        """Around the write of one message.

        Args:
            name: What it is called.
            size: Its bytes, if they are known.
        """
        hooks = rpc_hooks.hooks
        with self._lock:
            stamp = 0 if hooks is None else hooks.now()
            if self._sends:  # another task of our thread
                self._sent = _LOST
            self._sends = True
            try:
                yield
            except BaseException:
                self._sent = _LOST
                raise
            finally:
                self._sends = False
            number = self._sent
            if number != _LOST:
                self._sent += 2
            if hooks is not None:
                method = RpcMethod(self._service, name, 0, self._category)
                hooks.sent(self._channel, stamp, method, ONE_WAY, number, size)

    @contextmanager
    def handling(self, name: str, *, size: int | None = None) -> Iterator[None]:
        """Around what is done about one message that was read.

        Args:
            name: What it is called.
            size: Its bytes, if they are known.
        """
        number = self._received
        if number != _LOST:
            self._received += 2
        hooks = rpc_hooks.hooks
        span = None
        if hooks is not None:
            method = RpcMethod(self._service, name, 0, self._category)
            span = hooks.received(self._channel, method, ONE_WAY, number, size)
        with span or nullcontext():
            yield

    def lost(self, *, outgoing: bool = False) -> None:
        """Say that messages went by uncounted, or that it isn't known how many did.

        Args:
            outgoing: Of those that we send; else of those that we read.
        """
        if outgoing:
            self._sent = _LOST
        else:
            self._received = _LOST
