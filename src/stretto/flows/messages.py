"""Flows of any stream with message boundaries known at both ends; no byte is added.

    flow = MessageFlows(writer.get_extra_info("socket"), category="chat", is_server=False)

    with flow.sending("line"):                    line = await reader.readline()
        writer.write(line)                        with flow.handling("line"):
    await writer.drain()                              ...

The n-th message that one end sends is the n-th message that the other end receives. So both ends
have to make their `MessageFlows` before the first message, and use it for every message, empty ones
too. `sending` holds a lock while its block writes, so that messages are counted in the order of the
wire. Only one thread or task may read.

If the count becomes unknown, no arrow is drawn for the rest of the connection, and
`stretto.flows.stats()` counts `not synchronised`:

- after an exception in the block of `sending`: it is unknown whether the message was written. So
  encode the message before the block, and wait for the stream to drain after the block;
- if two tasks are in blocks of `sending` at once: the order of their writes is unknown;
- after `lost`, which the reader calls if messages were, or may have been, read without `handling`.

If both ends are created with the same `is_server`, there are no arrows; this can't be detected.
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
"""Replaces the number of the next message if the count is unknown."""


class MessageFlows:
    """One end of a stream.

    Args:
        end: The socket, or an object with its `fileno()`; None: there is none.
        category: The category of the messages.
        is_server: Which end it is; the other end must have the opposite value.
        service: The service of the messages' methods: the argument `service` of their slices.
        key: A key for the stream, used by both ends instead of the kernel's cookie
            (`stretto.flows.channel_key.nonce`).

    Raises:
        ConfigError: `end` has no `fileno()`.
    """

    def __init__(
        self, end: End | None, *, category: str, is_server: bool, service: str = "", key: int = 0
    ) -> None:
        if end is not None and not hasattr(end, "fileno"):
            raise ConfigError(f"{end!r} isn't a socket: pass a socket, or None and a key")
        switch(category)
        self._channel = RpcChannel(end, is_server=is_server, numbered=True, key=key)
        self._category = category
        self._service = service
        self._lock = RLock()
        self._sends = False
        # The two directions use different numbers: messages to the server have odd numbers.
        self._sent = 2 if is_server else 1
        self._received = 1 if is_server else 2

    @contextmanager
    def sending(self, name: str, *, size: int | None = None) -> Iterator[None]:
        """Record the sending of one message, which the block writes.

        Args:
            name: The name of the message.
            size: Its size in bytes, if known.
        """
        hooks = rpc_hooks.hooks
        with self._lock:
            stamp = 0 if hooks is None else hooks.now()
            if self._sends:
                # Another task of this thread is sending: the order of the writes is unknown.
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
        """Record the handling of one received message, in the block.

        Args:
            name: The name of the message.
            size: Its size in bytes, if known.
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
        """Report that messages were not counted, or may not have been.

        Args:
            outgoing: True for sent messages, False for received messages.
        """
        if outgoing:
            self._sent = _LOST
        else:
            self._received = _LOST
